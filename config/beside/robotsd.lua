-- Asks robotsd whether to forward a request. See haproxy.cfg.
--
-- The action uses a plain socket and not core.httpclient. core.httpclient tries a server that is
-- down four times, a second apart, and HAProxy 2.6 has no setting to change this.

local address, port = "127.0.0.1", 9180
local patience = 0.25 -- seconds

-- The fields that robotsd reads. It selects the [[site]] by Host. Every line of a repeated field is sent.
local question_fields = { "host", "accept", "content-type", "cookie", "referer", "sec-fetch-dest", "sec-fetch-mode",
  "sec-fetch-site", "signature", "signature-agent", "signature-input", "user-agent" }

-- The fields of the answer that are relayed to a client.
local answer_fields = { "content-type", "content-language", "cache-control", "vary", "x-content-type-options", "retry-after",
  "ratelimit", "ratelimit-policy", "grpc-status", "grpc-message", "grpc-retry-pushback-ms", "www-authenticate", "link",
  "crawler-price" }

-- The statuses that a site may use for refusals, in addition to 403.
local reasons = {
  [401] = "Unauthorized",
  [402] = "Payment Required",
  [404] = "Not Found",
  [410] = "Gone",
  [429] = "Too Many Requests",
  [451] = "Unavailable For Legal Reasons",
}

-- In HTTP/1.0, a response ends when the connection closes. Host is optional, and the client's
-- request may lack it.
local function question(txn)
  local lines = {
    "GET /-/auth/haproxy HTTP/1.0",
    -- The request target as received, not decoded. The target of `OPTIONS *` and CONNECT has no path.
    "X-Original-URI: " .. (txn.f:pathq() or "*"),
    "X-Original-Method: " .. txn.f:method(),
    "X-Real-IP: " .. tostring(txn.f:src()),
  }
  local sent = txn.http:req_get_headers()
  for _, name in ipairs(question_fields) do
    if sent[name] then
      for at = 0, #sent[name] do
        -- HAProxy accepts control characters in a value. They are replaced, except for tabs, because
        -- robotsd would answer 400.
        lines[#lines + 1] = name .. ": " .. sent[name][at]:gsub("[^%C\t]", "?")
      end
    end
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- Asks about a request. Returns the status, the header fields and the body of robotsd's answer, or
-- nothing if there is no answer.
local function ask(txn)
  local text = question(txn)
  local socket = core.tcp()
  socket:settimeout(patience)
  if not socket:connect(address, port) or not socket:send(text) then
    socket:close()
    return
  end
  local line = socket:receive("*l")
  local status = tonumber(line and line:match("^HTTP/1%.%d (%d%d%d)"))
  local fields = {}
  while status do
    line = socket:receive("*l")
    if not line then
      status = nil
    elseif line == "" or line == "\r" then
      break
    else
      local name, value = line:match("^([^:]+):%s*(.-)%s*$")
      if name then
        fields[name:lower()] = value
      end
    end
  end
  local length = tonumber(fields["content-length"])
  local body = status and length and length > 0 and socket:receive(length) or ""
  socket:close()
  return status, fields, body
end

core.register_action("robotsd", { "http-req" }, function(txn)
  local called, status, fields, body = pcall(ask, txn)
  if not called or not status then
    return -- Without an answer, HAProxy forwards the request.
  end
  if status == 200 then
    if fields["robots-verdict"] then
      txn.http:req_set_header("robots-verdict", fields["robots-verdict"])
    end
  elseif status >= 400 and status < 500 then
    -- A refusal, or the answer to a decision request that robotsd does not accept. Such a request
    -- must not bypass the rules.
    local refusal = reasons[status] and status or 403
    local reply = txn:reply({ status = refusal, reason = reasons[refusal] or "Forbidden" })
    for _, name in ipairs(answer_fields) do
      if fields[name] then
        reply:add_header(name, fields[name])
      end
    end
    if txn.f:method() ~= "HEAD" then
      reply:set_body(body)
    end
    txn:done(reply)
  end
end, 0)
