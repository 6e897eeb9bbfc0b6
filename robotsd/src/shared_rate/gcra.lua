-- Updates one bucket: the theoretical arrival time (TAT) of the next request, in microseconds of
-- the server's clock.
-- KEYS[1]  the bucket
-- ARGV     the interval, and how far ahead of now a request that passes may move the TAT; both in
--          microseconds
-- Returns how long the request has to wait, in microseconds: 0 if it passes.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
-- The TAT, and when it was written. GET fails for a value of another type. Such a value is
-- ignored, and SET replaces it: an error here would look like an error of the store, and then
-- each process would count every bucket alone.
local held = redis.pcall('GET', KEYS[1])
local stored, written
if type(held) == 'string' then
  stored, written = string.match(held, '^(%d+) (%d+)$')
  stored, written = stored and tonumber(stored), written and tonumber(written)
end
local tat = now + interval
-- The stored TAT is ignored in three cases. It was written later than now: the clock went back,
-- or is another server's. It is further ahead than this bucket allows: it belongs to another
-- bucket. It is not a pair of numbers.
if stored and written <= now and stored <= now + limit then
  tat = math.max(tat, stored + interval)
end
if tat - now > limit then
  return tat - now - limit
end
-- After this time the bucket is full again, like an absent bucket. tostring() would round.
local life = math.ceil((tat - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tat, now), 'PX', string.format('%.0f', life))
return 0
