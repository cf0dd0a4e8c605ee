-- The load of the comparison: a 2 KiB chat request. The last line of the output is for xtask.
local words = "Explain what the shape of a cloud tells about the weather of the next day. "
local head = '{"model":"bench","temperature":0.2,"max_tokens":256,"messages":['
  .. '{"role":"system","content":"You are a patient teacher of meteorology."},'
  .. '{"role":"user","content":"'
local tail = '"}]}'
local text = string.rep(words, 40):sub(1, 2048 - #head - #tail)

wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer a-key-of-the-client"
wrk.headers["user-agent"] = "OpenAI/Python 1.99.0"
wrk.body = head .. text .. tail

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("bench requests=%d failed=%d micros=%d p50=%d p99=%d\n",
    summary.requests, failed, summary.duration, latency:percentile(50), latency:percentile(99)))
end
