// Requests of the page. The token is in the memory of this module and nowhere else: not
// in a URL, not in storage, not in a cookie.

let token = '';
let onRefused = () => {};

export function setToken(value) { token = value; }
export function hasToken() { return token !== ''; }
export function whenRefused(f) { onRefused = f; }

// Refused is what a server says instead of an answer: a metav1.Status.
export class Refused extends Error {
  constructor(code, message, reason) {
    super(message);
    Object.assign(this, { code, reason });
  }
}

function headers(more) {
  return token ? { Authorization: `Bearer ${token}`, ...more } : { ...more };
}

async function refusal(response) {
  const text = (await response.text()).slice(0, 4096);
  let status = {};
  try { status = JSON.parse(text); } catch { /* not everything on the way speaks JSON */ }
  if (response.status === 401) onRefused(status.message ?? '');
  return new Refused(response.status, status.message || `The server answered ${response.status}.`, status.reason ?? '');
}

// get reads JSON.
export async function get(path, signal) {
  const response = await fetch(path, { headers: headers({ Accept: 'application/json' }), signal, cache: 'no-store', credentials: 'omit' });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

// serves says whether the server has a route: not every one knows fleets. Without a
// document it is one that knows none.
const least = { '/api/v1/tapps': {}, '/api/v1/apps': {}, '/api/v1/namespaces/{namespace}/tapps/{name}/history': {} };
let known = null;
export async function serves(route, signal) {
  known ??= get('api/openapi.json', signal).then((doc) => new Set(Object.keys(doc.paths ?? least)));
  try {
    return (await known).has(route);
  } catch (e) {
    known = null;
    if (e.code === 401 || signal.aborted) return false;
    return true; // its own answer will say what is wrong
  }
}

// post sends text or an object.
export async function post(path, body, type = 'application/json') {
  const response = await fetch(path, {
    method: 'POST', cache: 'no-store', credentials: 'omit',
    headers: headers({ Accept: 'application/json', 'Content-Type': type }),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

// The states of all streams together: what the header says.
const streams = new Map();
let onLink = () => {};
export function whenLink(f) { onLink = f; }

function report(stream, state) {
  if (state) streams.set(stream, state); else streams.delete(stream);
  const all = [...streams.values()];
  const down = all.filter((s) => !s.live);
  onLink({ live: all.length > 0 && down.length === 0, count: all.length, since: Math.min(...down.map((s) => s.since)), why: down[0]?.why ?? '' });
}

const shortest = 500, longest = 15000, silence = 45000;

// watch follows a path until the signal ends it. The handlers list, change, object and
// health get what the events of these names say; refused gets a refusal, after which the
// server is asked again only now and then.
export async function watch(path, handlers, signal) {
  const me = Symbol(path);
  const mine = { id: '', live: () => report(me, { live: true }) };
  signal.addEventListener('abort', () => report(me, null), { once: true });
  const late = (why) => report(me, { live: false, since: streams.get(me)?.since ?? Date.now(), why });
  for (let pause = shortest; !signal.aborted;) {
    const began = Date.now();
    try {
      await once(path, handlers, signal, mine);
      late('');
    } catch (e) {
      if (signal.aborted) return;
      if (e instanceof Refused && e.code !== 429 && e.code < 500) {
        report(me, null);
        handlers.refused?.(e);
        if (e.code === 401) return;
        mine.id = '';
        pause = e.code === 404 ? 8 * longest : longest; // a kind that is not installed may be one day
      } else late(e.message);
    }
    if (Date.now() - began > longest) pause = shortest; // it went well for a while
    await rest(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(longest, pause * 2);
  }
}

// poll asks for a list now and then that the server has no stream of. The handlers are
// those of watch.
export async function poll(path, handlers, signal) {
  while (!signal.aborted) {
    let pause = longest;
    try {
      handlers.list(await get(path, signal));
    } catch (e) {
      if (signal.aborted) return;
      if (e instanceof Refused && e.code !== 429 && e.code < 500) {
        handlers.refused?.(e);
        if (e.code === 401) return;
        if (e.code === 404) pause = 8 * longest;
      } // else the streams beside it say that the server is away
    }
    await rest(pause * (0.75 + Math.random() / 2), signal);
  }
}

function rest(time, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
    addEventListener('online', resolve, { once: true });
  });
}

// once follows one response to its end.
async function once(path, handlers, signal, mine) {
  const own = new AbortController();
  const end = () => own.abort();
  signal.addEventListener('abort', end, { once: true });
  let timer;
  const alive = () => { clearTimeout(timer); timer = setTimeout(end, silence); };
  try {
    alive();
    const url = path + (path.includes('?') ? '&' : '?') + 'watch=1';
    const more = { Accept: 'text/event-stream', ...(mine.id ? { 'Last-Event-ID': mine.id } : {}) };
    const response = await fetch(url, { headers: headers(more), signal: own.signal, cache: 'no-store', credentials: 'omit' });
    if (!response.ok) throw await refusal(response);
    mine.live();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let pieces = [], last = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      pieces.push(value);
      const complete = (last + value).includes('\n\n');
      last = value.slice(-1);
      if (!complete) continue; // a list of 10,000 comes in many pieces, which are joined once
      const records = pieces.join('').split('\n\n');
      pieces = [records.pop()];
      last = pieces[0].slice(-1);
      records.forEach((r) => take(r, handlers, mine));
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    own.abort();
  }
}

// take a record of server-sent events: its name, its id and its data.
function take(record, handlers, mine) {
  let type = 'message', data = '', id = null;
  for (const line of record.split('\n')) {
    if (line.startsWith('event:')) type = line.slice(6).trim();
    else if (line.startsWith('id:')) id = line.slice(3).trim();
    else if (line.startsWith('data:')) data += line.slice(5);
  }
  if (!data) return; // a comment that keeps the connection open
  const body = JSON.parse(data);
  if (type === 'error') throw new Refused(body.code ?? 500, body.message ?? 'The stream ended.', body.reason);
  handlers[type]?.(body);
  if (type === 'list' || type === 'object') handlers.health?.({ degraded: body.degraded, asOf: body.asOf });
  if (id !== null) mine.id = id;
}
