-- Updates one bucket: the theoretical arrival time (TAT) of the next request, in microseconds of
-- the server's clock.
-- KEYS[1]  the bucket
-- ARGV     the interval between requests, and the maximum time by which the TAT may be ahead of now;
--          both in microseconds
-- Returns how long the request has to wait, in microseconds: 0 if it is allowed.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
-- The stored TAT, and when it was written. GET fails if the value is not a string. Such a value is
-- ignored, and SET replaces it. An error here would look like a failure of the store, and each
-- process would then count all buckets by itself.
local held = redis.pcall('GET', KEYS[1])
local stored, written
if type(held) == 'string' then
  stored, written = string.match(held, '^(%d+) (%d+)$')
  stored, written = stored and tonumber(stored), written and tonumber(written)
end
local tat = now + interval
-- The stored TAT is ignored in three cases. (1) It was written later than now: the clock went back,
-- or belongs to another server. (2) It is further ahead than this bucket allows, so it belongs to
-- another bucket. (3) The value is not a pair of numbers.
if stored and written <= now and stored <= now + limit then
  tat = math.max(tat, stored + interval)
end
if tat - now > limit then
  return tat - now - limit
end
-- After this time the bucket is full again, like a bucket that is not stored. tostring() would
-- round.
local life = math.ceil((tat - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tat, now), 'PX', string.format('%.0f', life))
return 0
