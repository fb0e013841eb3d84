// The overview: what needs a human, then everything, one line each.
import { serves, poll, watch, Refused } from './client.js';
import { h, fill, sync, setText, told, since, state, command, say } from './dom.js';
import { marksOf, phaseMark, severities, severityNames, stageMark } from './marks.js';
import { paths, link, clusterLink, nextOf, summary } from './wire.js';
import { actionsFor } from './actions.js';

const kinds = [['appsets', 'AppSets'], ['tapps', 'TApps'], ['apps', 'Apps']];

export function overview({ main, session, signal }) {
  const lists = new Map(); // kind -> key -> summary
  const clusters = new Map();
  const refused = new Map();
  const degraded = new Map();
  const ready = new Set();
  let only = null, text = '';

  const head = h('h1', { id: 'headline' }, '\u00a0');
  const counts = h('ul', { class: 'counts', 'aria-label': 'Filter by what needs attention' });
  const attention = h('ul', { class: 'attention', 'aria-label': 'Needs attention' });
  const none = h('p', { class: 'soft', hidden: true });
  const refusals = h('div', { class: 'refusals' });
  const stale = h('div', { class: 'refusals' });
  const find = h('input', { type: 'search', id: 'find', placeholder: 'name', autocomplete: 'off', spellcheck: 'false', oninput: (e) => { text = e.target.value.toLowerCase(); draw(); } });
  const sections = new Map(kinds.map(([kind, title]) => [kind, section(kind, title)]));
  fill(main, h('section', { class: 'top', 'aria-labelledby': 'headline' }, head, counts, attention, none), refusals, stale,
    h('div', { class: 'finder' }, h('label', { for: 'find' }, 'Find'), find), [...sections.values()].map((s) => s.element));

  let frame;
  const draw = () => { frame ??= requestAnimationFrame(() => { frame = undefined; if (!signal.aborted) render(); }); };

  for (const [kind] of kinds) {
    const mine = new Map();
    lists.set(kind, mine);
    follow(paths.list(kind, session.namespace), kind, mine, (o) => summary(kind, o));
  }
  // Who is shown one namespace sees no clusters.
  if (session.namespace) ready.add('clusters');
  else follow(paths.clusters(), 'clusters', clusters, (o) => ({ ...o, key: o.name }), poll);

  function follow(path, kind, into, read, by = watch) {
    const put = (items) => { for (const o of items ?? []) { const s = read(o); into.set(s.key, s); } };
    const seen = () => { ready.add(kind); refused.delete(kind); draw(); };
    const handlers = {
      list: (l) => { into.clear(); put(l.items); seen(); },
      change: (c) => { put(c.items); for (const key of c.removed ?? []) into.delete(key); seen(); },
      health: (state) => { if (state.degraded) degraded.set(kind, state); else degraded.delete(kind); draw(); },
      refused: (e) => { into.clear(); if (e.code !== 404) refused.set(kind, e); ready.add(kind); draw(); },
    };
    serves(`/api/v1/${kind}`, signal).then((known) => {
      if (known) by(path, handlers, signal);
      else if (!signal.aborted) { ready.add(kind); draw(); }
    });
  }

  const everything = () => [...lists.values()].flatMap((m) => [...m.values()]);

  function waiting() {
    const out = everything().flatMap((s) => s.attention);
    for (const c of clusters.values()) {
      if (!c.state || c.state === 'Ready' || c.state === 'Maintaining') continue;
      out.push({ severity: 'silent', kind: 'clusters', ns: '', name: c.name, cluster: c.name, reason: c.reason || c.state, message: c.message || `Cluster ${c.name} is ${c.state}.`, since: c.asOf });
    }
    // A silent cluster is told once, not again by every AppSet in it.
    const silent = new Set(out.filter((a) => a.kind === 'clusters').map((a) => a.name));
    return out.filter((a) => a.kind === 'clusters' || a.severity !== 'silent' || silent.size === 0)
      .sort((a, b) => severityNames.indexOf(a.severity) - severityNames.indexOf(b.severity) || Date.parse(a.since ?? 0) - Date.parse(b.since ?? 0) || a.name.localeCompare(b.name));
  }

  function render() {
    const list = waiting();
    const total = everything().length, sick = new Set(list.filter((a) => a.kind !== 'clusters' && a.severity !== 'paused').map((a) => `${a.kind}/${a.ns}/${a.name}`)).size;
    const done = ready.size === kinds.length + 1;
    const need = list.filter((a) => a.severity !== 'paused').length;
    const headline = need ? `${need === 1 ? 'One thing needs' : `${need} things need`} you` : done ? (total ? 'Nothing needs you' : 'Nothing is here yet') : 'Looking';
    if (head.textContent !== headline) { setText(head, headline); if (done) say(headline); }
    const by = severityNames.map((name) => [name, list.filter((a) => a.severity === name).length]).filter(([, n]) => n);
    if (only && !by.some(([name]) => name === only)) only = null;
    sync(counts, [...by, ['fine', Math.max(0, total - sick)]], ([name]) => name,
      ([name]) => h('li', null, name === 'fine' ? h('span', { class: 'count good' })
        : h('button', { class: `count ${severities[name].tone}`, onclick: () => { only = only === name ? null : name; draw(); } })),
      (e, [name, n]) => {
        const mark = name === 'fine' ? { sign: '✓', many: 'fine' } : severities[name];
        setText(e.firstChild, `${mark.sign} ${n} ${mark.many}`);
        if (name !== 'fine') e.firstChild.setAttribute('aria-pressed', String(only === name));
      });
    const shown = list.filter((a) => !only || a.severity === only).slice(0, 200);
    sync(attention, shown, (a) => [a.severity, a.kind, a.ns, a.name, a.reason, a.message, a.since].join('|'), (a) => item(a, session));
    none.hidden = need > 0 || !done;
    if (!none.hidden) setText(none, total ? `${total} ${total === 1 ? 'object is' : 'objects are'} where the spec wants ${total === 1 ? 'it' : 'them'}.` : 'Create a TApp, an AppSet or an App, and it appears here.');
    sync(refusals, [...refused], ([kind]) => kind, ([kind, e]) => denied(kind, e, session));
    sync(stale, [...degraded], ([kind, d]) => kind + d.degraded, ([kind, d]) => staleness(kind, d));
    for (const [kind] of kinds) sections.get(kind).render([...lists.get(kind).values()].filter((s) => s.key.toLowerCase().includes(text)));
    fill(document.getElementById('namespaces'), [...new Set(everything().map((s) => s.ns))].sort().map((ns) => h('option', { value: ns })));
  }
  draw();
}

// staleness says that what is shown is not current, and why.
export function staleness(kind, d) {
  return h('p', { class: 'denied', role: 'status' }, state({ sign: '◔', word: `${kind} may not be current`, tone: 'warn' }), ' ', told(d.degraded), since(d.asOf, ' As of ', ' ago.'));
}

// denied says why something cannot be seen, and by whose rights it could.
export function denied(kind, e, session) {
  const where = session.namespace ? `-n ${session.namespace}` : '--all-namespaces';
  return h('div', { class: 'denied', role: 'alert' }, h('h2', null, state({ sign: '⊘', word: `You may not see ${kind}`, tone: 'warn' })),
    h('p', null, told(e instanceof Refused ? e.message : String(e))),
    session.namespace ? null : h('p', { class: 'soft' }, 'If you may see one namespace only, name it above.'),
    command(`kubectl auth can-i list ${kind} ${where}`));
}

const noun = { tapps: 'TApp', appsets: 'AppSet', apps: 'App', clusters: 'Cluster' };

function item(a, session) {
  const mark = severities[a.severity];
  return h('li', { class: `need ${mark.tone}` },
    h('div', { class: 'what' }, state(mark), h('span', { class: 'soft' }, since(a.since, 'for '))),
    h('div', { class: 'who' }, h('h2', null, h('a', { href: a.kind === 'clusters' ? clusterLink(a.name) : link(a.kind, a.ns, a.name) },
      a.ns ? h('span', { class: 'soft' }, told(a.ns), '/') : null, told(a.name))), h('span', { class: 'soft' }, noun[a.kind])),
    h('p', { class: 'why' }, told(a.message || a.reason)),
    h('div', { class: 'do' }, command(nextOf(a)), actionsFor(a, session)));
}

function section(kind, title) {
  const body = h('div', { role: 'rowgroup' });
  const count = h('span', { class: 'soft num' });
  const element = h('section', { class: 'list', hidden: true, 'aria-labelledby': `list-${kind}` },
    h('h2', { id: `list-${kind}` }, title, ' ', count),
    h('div', { class: 'rows', role: 'table', 'aria-labelledby': `list-${kind}` },
      h('div', { class: 'row header', role: 'row' }, ['Name', 'State', kind === 'appsets' ? 'Stages' : 'Instances', 'Available', 'Versions', 'Budget', 'Age']
        .map((name) => h('span', { role: 'columnheader' }, name))), body));
  return {
    element,
    render(list) {
      list.sort((a, b) => a.ns.localeCompare(b.ns) || a.name.localeCompare(b.name, undefined, { numeric: true }));
      element.hidden = list.length === 0;
      setText(count, String(list.length));
      sync(body, list.slice(0, 1000), (s) => s.key, row, update);
    },
  };
}

function row(s) {
  const cells = {};
  const cell = (name, ...children) => (cells[name] = h('div', { class: `at-${name}`, role: 'cell' }, ...children));
  const e = h('div', { class: 'row', role: 'row' },
    cell('name', h('a', { href: link(s.kind, s.ns, s.name) }, h('span', { class: 'soft' }, told(s.ns), '/'), told(s.name))),
    cell('state'), cell('bar'), cell('available'), cell('versions'), cell('budget'), cell('age', since(s.created)));
  e.cells = cells;
  return e;
}

function update(e, s) {
  const text = JSON.stringify([s.state, s.paused, s.desired, s.available, s.versions, s.states, s.budget, s.stages]);
  if (e.told === text) return;
  e.told = text;
  const { cells } = e;
  fill(cells.state, state(phaseMark(s.state)));
  fill(cells.bar, s.kind === 'appsets' && s.stages.length ? stageBar(s.stages) : instanceBar(s));
  fill(cells.available, h('span', { class: `num ${s.available < s.desired ? 'short' : ''}` }, h('span', { class: 'label' }, 'available '), `${s.available} of ${s.desired}`));
  fill(cells.versions, versionList(s.versions));
  fill(cells.budget, s.budget ? [h('div', { class: 'num soft' }, h('span', { class: 'label' }, 'budget '), `${s.budget.used ?? 0} of ${s.budget.max}`),
    s.budget.silent ? h('div', { class: 'num soft' }, `${s.budget.silent} silent`) : null] : null);
}

// versionList: each version with its colour, its sign and its name.
export function versionList(versions) {
  const marks = marksOf(versions.map((v) => v.key));
  return h('ul', { class: 'versions' }, versions.slice(0, 6).map((v) => {
    const m = marks.get(v.key);
    return h('li', null, h('span', { class: `sign ${m.fill}`, 'aria-hidden': 'true' }, m.sign), told(v.name), v.instances !== undefined && versions.length > 1 ? h('span', { class: 'num soft' }, ` ${v.instances}`) : null);
  }), versions.length > 6 ? h('li', { class: 'soft' }, `and ${versions.length - 6} more`) : null);
}

// instanceBar: how many of the desired are available, by version; what is not follows.
export function instanceBar(s) {
  const marks = marksOf(s.versions.map((v) => v.key));
  const whole = Math.max(1, s.desired, s.available);
  const sum = s.versions.reduce((n, v) => n + (v.instances ?? 0), 0);
  const parts = s.versions.map((v) => [marks.get(v.key).fill, sum ? (v.instances ?? 0) * Math.min(1, s.available / sum) : 0]);
  const failed = (s.states.Failed ?? 0) + (s.states.PodFailed ?? 0), lost = s.states.Unknown ?? 0;
  if (!parts.length) parts.push(['v0', s.available]);
  parts.push(['failed', failed], ['lost', lost], ['pending', Math.max(0, s.desired - s.available - failed - lost)]);
  return bar(parts.map(([fill, n]) => [fill, n / whole]), `${s.available} of ${s.desired} instances are available`);
}

function bar(parts, label) {
  return h('div', { class: 'bar-of', role: 'img', 'aria-label': label }, parts.filter(([, share]) => share > 0).map(([name, share]) => {
    const e = h('span', { class: `fill-${name}` });
    e.style.flexGrow = String(share);
    return e;
  }));
}

// stageBar: the stages of a rollout in their order.
export function stageBar(stages) {
  return h('ol', { class: 'stages' }, stages.map((stage) => {
    const m = stageMark(stage.state);
    return h('li', { class: m.tone, title: `${stage.name}: ${m.word}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, m.sign), told(stage.name), h('span', { class: 'hide' }, `: ${m.word}`));
  }));
}
