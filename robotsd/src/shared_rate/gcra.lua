-- One bucket: the theoretical arrival time (TAT) of the next request, in microseconds of the server's clock.
-- KEYS[1]  the bucket
-- ARGV     count, interval, limit, earliest, horizon, keep, "ask" or "report"; the numbers but count in microseconds
-- Returns whether the requests pass, 1 or 0, and how far the TAT is ahead of now.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, interval, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local earliest, horizon, keep = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
-- The TAT, and when it was written.
local held = redis.call('GET', KEYS[1])
local stored, written
if held then
  stored, written = string.match(held, '^(%d+) (%d+)$')
  stored, written = stored and tonumber(stored), written and tonumber(written)
end
local tat = now + earliest
-- Written later than now: the clock went back, or is another server's. Further ahead than a bucket can be: it was another bucket.
-- That says nothing, as does what is no pair of numbers.
if stored and written <= now and stored <= now + horizon then
  tat = math.max(tat, stored + count * interval)
  if ARGV[7] == 'ask' and tat - now > limit then
    return {0, stored - now}
  end
end
-- Full again by then, which is what an absent bucket means; kept for longer where a report may come of requests before that.
local life = math.ceil((tat - now + keep) / 1000)
if life > 0 then
  -- tostring() would round.
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', tat, now), 'PX', string.format('%.0f', life))
end
return {1, tat - now}
