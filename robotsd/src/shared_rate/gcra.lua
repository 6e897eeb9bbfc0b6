-- One bucket: the theoretical arrival time (TAT) of the next request, in microseconds of the server's clock.
-- KEYS[1]  the bucket
-- ARGV     the interval, and how far a request that passes may move the TAT ahead of now; in microseconds
-- Returns how long the request has to wait, in microseconds: 0 if it passes.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
-- The TAT, and when it was written. GET refuses a value of another type. Such a value says nothing, and SET replaces it: an error here
-- would look like an error of the store, and every other bucket would be counted alone.
local held = redis.pcall('GET', KEYS[1])
local stored, written
if type(held) == 'string' then
  stored, written = string.match(held, '^(%d+) (%d+)$')
  stored, written = stored and tonumber(stored), written and tonumber(written)
end
local tat = now + interval
-- Written later than now: the clock went back, or is another server's. Further ahead than a bucket can be: it was another bucket.
-- That says nothing, as does what is no pair of numbers.
if stored and written <= now and stored <= now + limit then
  tat = math.max(tat, stored + interval)
end
if tat - now > limit then
  return tat - now - limit
end
-- Full again by then, which is what an absent bucket means. tostring() would round.
local life = math.ceil((tat - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tat, now), 'PX', string.format('%.0f', life))
return 0
