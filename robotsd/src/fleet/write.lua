-- Executes one write to the shared document of a fleet.
-- KEYS[1]  the document
-- ARGV     epoch, floor, tag, format; the field and its value without rev; another field, and if it
--          exists, the write is not needed; a field to remove; the expected rev. If the field is
--          empty, the write only creates or repairs the document. Then, for each repaired field: its name, its current value,
--          and its new value, or an empty string to remove the field.
local doc = KEYS[1]
local epoch, floor, tag, format, field, value, unless, removed, expected = unpack(ARGV, 1, 9)
local is_repair = #ARGV > 9
-- The same maximum as in document.rs.
local max = 2 ^ 48

local function rev_of(accept)
  local is_json, entry = pcall(cjson.decode, accept)
  if not is_json or type(entry) ~= 'table' or type(entry.id) ~= 'string' or type(entry.hash) ~= 'string' then
    return nil
  end
  local rev = entry.rev == nil and 0 or entry.rev
  return type(rev) == 'number' and rev >= 0 and rev <= max and rev % 1 == 0 and rev or nil
end

local known = redis.pcall('HGET', doc, 'epoch')
if type(known) == 'table' then
  if not (is_repair and string.find(known.err, 'WRONGTYPE', 1, true)) then
    return known
  end
  redis.call('DEL', doc)
  known = false
end
if known and (#known > 64 or not string.match(known, '^%w+$')) then
  -- The epoch is not valid, so it is written again.
  known = false
end
if known and known ~= epoch then
  return {'foreign', known}
end
local is_repaired = false
for at = 10, #ARGV, 3 do
  if redis.call('HGET', doc, ARGV[at]) == ARGV[at + 1] then
    is_repaired = true
    if ARGV[at + 2] == '' then
      redis.call('HDEL', doc, ARGV[at])
    else
      redis.call('HSET', doc, ARGV[at], ARGV[at + 2])
    end
  end
end
local rev = redis.call('HGET', doc, 'rev')
rev = rev and #rev <= 15 and string.match(rev, '^%d+$') and tonumber(rev)
if rev and rev > max then
  rev = nil
end
if field == '' then
  if known and rev and not is_repaired then
    return {'kept', '0'}
  end
else
  local held = redis.call('HGET', doc, field)
  if expected ~= '' then
    -- An unreadable accept entry may be replaced by any other.
    local rev = held and rev_of(held) or not held and 0
    rev = rev and string.format('%.0f', rev)
    if rev and rev ~= expected then
      -- A write is repeated if the reply to it was lost. The store then already contains the entry.
      if held and cjson.decode(held).id == cjson.decode(value).id then
        return {'written', rev}
      end
      return {'conflict', rev}
    end
  elseif held or (unless ~= '' and redis.call('HEXISTS', doc, unless) == 1) then
    return {'kept', '0'}
  end
end
if not rev then
  -- The new rev must be greater than the revs of all accept entries, because a rev identifies an
  -- entry.
  rev = 0
  local all = redis.call('HGETALL', doc)
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 7) == 'accept:' then
      rev = math.max(rev, rev_of(all[at + 1]) or 0)
    end
  end
end
-- tostring() would round a large number.
rev = string.format('%.0f', math.min(math.max(rev, tonumber(floor)) + 1, max))
redis.call('HSET', doc, 'epoch', epoch, 'rev', rev, 'tag', tag)
redis.call('HSETNX', doc, 'format', format)
if field ~= '' then
  redis.call('HSET', doc, field, '{"rev":' .. rev .. ',' .. string.sub(value, 2))
end
if removed ~= '' then
  redis.call('HDEL', doc, removed)
end
return {'written', rev}
