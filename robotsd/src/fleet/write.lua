-- One write to the document of a fleet.
-- KEYS[1]  the document
-- ARGV     epoch, floor, tag, format; the field and its value without rev; a field that makes the write superfluous, one that is
--          removed by it, the rev that is expected. An empty field: the document itself.
local doc = KEYS[1]
local epoch, floor, tag, format, field, value, unless, removed, expected = unpack(ARGV)
local known = redis.call('HGET', doc, 'epoch')
if known and known ~= epoch then
  return {'foreign', known}
end
if field == '' then
  if known then
    return {'kept', '0'}
  end
else
  local held = redis.call('HGET', doc, field)
  if expected ~= '' then
    local rev = held and string.format('%.0f', tonumber(cjson.decode(held).rev) or 0) or '0'
    if rev ~= expected then
      return {'conflict', rev}
    end
  elseif held or (unless ~= '' and redis.call('HEXISTS', doc, unless) == 1) then
    return {'kept', '0'}
  end
end
-- tostring() would round.
local rev = string.format('%.0f', math.max(tonumber(redis.call('HGET', doc, 'rev') or '0') or 0, tonumber(floor)) + 1)
redis.call('HSET', doc, 'epoch', epoch, 'rev', rev, 'tag', tag)
redis.call('HSETNX', doc, 'format', format)
if field ~= '' then
  redis.call('HSET', doc, field, '{"rev":' .. rev .. ',' .. string.sub(value, 2))
end
if removed ~= '' then
  redis.call('HDEL', doc, removed)
end
return {'written', rev}
