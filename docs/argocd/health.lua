-- Tells Argo CD how a TApp is: docs/operations.md says where to put this.
local function condition(kind)
  for _, c in ipairs(obj.status.conditions or {}) do
    if c.type == kind then
      return c
    end
  end
  return {status = "Unknown", reason = "", message = ""}
end

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "it is being deleted"}
end
if obj.status == nil or (obj.status.observedGeneration or 0) < obj.metadata.generation then
  return {status = "Progressing", message = "the controller has not seen this spec yet"}
end

local ready, progressing, stalled = condition("Ready"), condition("Progressing"), condition("Stalled")
if stalled.status == "True" then
  return {status = "Degraded", message = stalled.message}
end
if ready.status == "True" then
  return {status = "Healthy", message = ready.message}
end
if ready.reason == "InstancesFailed" then
  return {status = "Degraded", message = ready.message}
end
if progressing.reason == "Paused" then
  return {status = "Suspended", message = "paused: " .. ready.message}
end
return {status = "Progressing", message = ready.message}
