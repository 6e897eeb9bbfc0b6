-- Stores the heartbeat of a replica with the clock of the store. Returns the time, the heartbeats
-- of all replicas, and the previous heartbeat of this replica. Removes replicas that were silent
-- for a day.
-- KEYS[1]  the heartbeats of all replicas, by name
-- ARGV     name, heartbeat as JSON
local before = redis.call('HGET', KEYS[1], ARGV[1])
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], '{"at":' .. string.format('%.0f', now) .. ',' .. string.sub(ARGV[2], 2))
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local at = string.match(all[i + 1], '^{"at":(%d+)')
  if not at or now - tonumber(at) > 86400 then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return {string.format('%.0f', now), all, before}
