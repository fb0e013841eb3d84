// One TApp: its instances as a grid, or as a table, and why each is where it is.
import { watch } from './client.js';
import { h, fill, sync, paged, setText, told, printable, since, state, command, commands } from './dom.js';
import { Grid } from './grid.js';
import { marksOf, phaseMark, severities, stateMark, stateNames, stateOf } from './marks.js';
import { budgetWords, imagesName, nextOf, paths, summary, tapp } from './wire.js';
import { actions, actionsFor } from './actions.js';
import { denied, staleness, versionList } from './overview.js';
import { historyOf, eventsOf } from './history.js';

const pageSize = 100;

export function tappView({ main, session, signal, args: [ns, name] }) {
  const byID = new Map();
  const names = new Map();
  let last = null, versions = [];
  let list = [], marks = new Map(), paused = false, pointed = null, picked = [], table = false, page = 0, only = null;

  const head = h('div', { class: 'object' });
  const needs = h('ul', { class: 'attention inline' });
  const stale = h('div');
  const past = historyOf('tapps', ns, name, session, signal);
  const ahead = h('section', { class: 'ahead', 'aria-label': 'Ahead' });
  const legend = h('ul', { class: 'legend', 'aria-label': 'Show only' });
  const why = h('section', { class: 'inspector', 'aria-label': 'Instance' });
  const rows = h('tbody');
  const pager = h('div', { class: 'actions pager' });
  const tableView = h('div', { class: 'tabular', hidden: true },
    h('table', null, h('caption', { class: 'hide' }, `Instances of ${name}`), h('thead', null, h('tr', null, ['Id', 'State', 'Version', 'Since', 'Node', 'Why'].map((t) => h('th', { scope: 'col' }, t)))), rows), pager);
  const grid = new Grid({
    cell, label: (i) => sentence(i),
    point: (i) => { pointed = i?.id ?? null; inspect(); },
    pick: (ids) => { picked = ids; pointed = null; inspect(); },
  });
  const toggle = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
    table = !table;
    toggle.setAttribute('aria-pressed', String(table));
    tableView.hidden = !table;
    grid.element.hidden = table;
    if (table) drawTable(); else grid.layout();
  } }, 'As a table');
  fill(main, head, stale, needs,
    h('section', { class: 'instances', 'aria-label': 'Instances' }, h('div', { class: 'tools' }, legend, toggle), h('div', { class: 'split' }, h('div', null, grid.element, tableView), why)),
    ahead, h('div', { class: 'below' }, past.element, eventsOf('tapps', ns, name, signal)));
  heading(head, { kind: 'TApp', ns, name });
  signal.addEventListener('abort', () => grid.close(), { once: true });
  window.tappGrid = grid; // for measurements

  watch(paths.object('tapps', ns, name), {
    object: show,
    health: (d) => fill(stale, d.degraded ? staleness('This', d) : []),
    refused: (e) => fill(head, h('h1', null, told(name)), e.code === 404 ? h('p', null, `There is no TApp ${printable(name)} in namespace ${printable(ns)}.`) : denied('tapps', e, { namespace: ns })),
  }, signal);

  watch(paths.part('tapps', ns, name, 'instances'), {
    list: (l) => { byID.clear(); take(l.items); sums(l); arrange(); grid.set(list); later(); },
    change: (c) => {
      const before = byID.size + marks.size;
      const ids = take(c.items);
      for (const id of c.removed ?? []) byID.delete(id);
      sums(c);
      if (c.removed?.length || byID.size + marks.size !== before) { arrange(); grid.set(list); } else {
        for (const id of ids) list[grid.place.get(id)] = byID.get(id);
        grid.change(ids);
      }
      later();
    },
    refused: (e) => { if (e.code !== 404) fill(why, denied('instances', e, { namespace: ns })); },
  }, signal);

  function take(items) {
    for (const i of items ?? []) {
      i.mark = stateOf(i);
      i.key = i.version || i.template;
      byID.set(i.id, i);
    }
    return (items ?? []).map((i) => i.id);
  }

  // sums over all instances: the versions, of which each gets a mark and a name.
  function sums(s) {
    const before = JSON.stringify(versions);
    versions = (s.versions ?? []).map((v) => ({ key: v.hash, name: imagesName(v.images) || v.hash, instances: v.instances }));
    if (last && JSON.stringify(versions) !== before) show(last);
    const keys = new Set((s.versions ?? []).map((v) => v.hash));
    for (const v of s.versions ?? []) names.set(v.hash, imagesName(v.images) || v.hash);
    for (const i of byID.values()) if (!keys.has(i.key)) keys.add(i.key);
    if (keys.size !== marks.size || [...keys].some((k) => !marks.has(k))) marks = marksOf(keys);
  }

  function arrange() {
    list = [...byID.values()].sort((a, b) => Number(a.id) - Number(b.id));
  }

  function cell(i) {
    if (i.mark !== 'ok') { const m = stateMark(i.mark); return { fill: m.fill, sign: m.sign, name: i.mark }; }
    const m = marks.get(i.key);
    return { fill: m.fill, sign: marks.size > 1 ? m.sign : '', name: i.key };
  }

  function show(o) {
    last = o;
    const s = summary('tapps', o);
    if (versions.length) s.versions = versions; // those that run, with the signs of the grid
    past.follow([o.updateRevision, o.currentRevision].join());
    paused = s.paused;
    heading(head, { kind: 'TApp', ns, name, s, next: s.commands.length ? s.commands : [
      ['What is left to do', tapp('plan', ns, name)],
      s.paused ? ['Let updates start again', tapp('resume', ns, name)] : ['Hold updates', tapp('pause', ns, name)],
    ], actions: actions(session, [s.paused ? ['Resume…', request('resume')] : ['Pause…', request('pause')], ['Undo…', request('undo')]]) });
    fill(ahead, s.waiting.length ? [h('h2', null, 'What instances wait for'), h('ul', { class: 'facts' }, s.waiting.slice(0, 20).map((w) => h('li', null,
      h('span', { class: 'num' }, `${w.count} × `), told(w.why || w.reason), h('span', { class: 'soft' }, ` (instances ${printable(w.instances)})`))))] : [],
    s.steps.length ? [h('h2', null, 'What is left to do'), h('ol', { class: 'facts' }, s.steps.slice(0, 20).map((x, n) => h('li', null, h('span', { class: 'num soft' }, `${n + 1}. `), told(x.sentence ?? x.why))))] : []);
    sync(needs, s.attention, (a) => JSON.stringify(a), (a) => h('li', { class: `need ${severities[a.severity].tone}` },
      h('div', { class: 'what' }, state(severities[a.severity]), since(a.since, 'for ')), h('p', { class: 'why' }, told(a.message || a.reason)),
      h('div', { class: 'do' }, command(nextOf(a)), actionsFor(a, session))));
  }

  const request = (verb, more) => ({ kind: 'tapps', namespace: ns, name, verb, ...more });

  let frame;
  function later() {
    frame ??= setTimeout(() => { frame = undefined; if (!signal.aborted) { counts(); inspect(); if (table) drawTable(); } }, 100);
  }

  function counts() {
    const n = new Map();
    for (const i of list) { const k = i.mark === 'ok' ? i.key : i.mark; n.set(k, (n.get(k) ?? 0) + 1); }
    const entries = [...[...marks.keys()].filter((k) => n.has(k)).map((k) => ({ k, sign: marks.size > 1 ? marks.get(k).sign : '', fill: marks.get(k).fill, word: names.get(k) })),
      ...stateNames.filter((k) => k !== 'ok' && n.has(k)).map((k) => ({ k, sign: stateMark(k).sign, fill: stateMark(k).fill, word: stateMark(k).word }))];
    if (only && !n.has(only)) filter(null);
    sync(legend, entries, (x) => x.k + x.sign, (x) => h('li', null, h('button', { type: 'button', onclick: () => filter(only === x.k ? null : x.k) },
      h('span', { class: `swatch fill-${x.fill}`, 'aria-hidden': 'true' }, x.sign), ' ', told(x.word), ' ', h('span', { class: 'num soft' }))),
    (e, x) => { setText(e.firstChild.lastChild, String(n.get(x.k))); e.firstChild.setAttribute('aria-pressed', String(only === x.k)); });
  }

  function filter(k) {
    only = k;
    page = 0;
    grid.filter(k ? new Set([k]) : null);
    counts();
    if (table) drawTable();
  }

  function sentence(i) {
    return [`Instance ${i.id}`, i.mark === 'ok' ? 'available' : `${i.state}, ${stateMark(i.mark).word}`, `version ${names.get(i.key) ?? i.template}`, i.why || i.next?.[0]?.why || ''].filter(Boolean).map(printable).join(', ');
  }

  function inspect() {
    const i = byID.get(pointed ?? (picked.length ? picked.at(-1) : list.length && document.activeElement === grid.element ? list[grid.active].id : null));
    const key = i ? JSON.stringify([i, picked, paused]) : 'none' + picked.length + list.length;
    if (why.told === key) return;
    why.told = key;
    if (!i) { fill(why, h('p', { class: 'soft' }, list.length ? 'Point at an instance to see why it is where it is. Arrow keys move, Space picks several.' : 'No instances yet.')); return; }
    const m = stateMark(i.mark), v = marks.get(i.key);
    const ids = ranges(picked.length && pointed === null ? picked : [i.id]);
    const many = picked.length > 1 && pointed === null;
    fill(why, h('div', { class: 'inspect-head' }, h('h2', null, `Instance ${printable(i.id)}`), state({ sign: m.sign || '✓', word: i.state, tone: m.tone }), since(i.since, 'for ')),
      h('dl', null,
        pair('Version', h('span', { class: `sign ${v?.fill}` }, v?.sign), ' ', told(names.get(i.key) ?? i.template), i.current === false ? h('span', { class: 'warn' }, ' · not its template yet') : null),
        pair('Why', i.why ? told(i.why) : i.next?.length ? null : h('span', { class: 'soft' }, 'It is where the spec wants it.'), i.reason ? h('span', { class: 'soft' }, ` (${printable(i.reason)})`) : null),
        i.next?.length ? pair('Next', h('ul', null, i.next.map((a) => h('li', null, h('strong', null, printable(a.op)), ': ', told(a.why))))) : null,
        i.pod ? pair('Pod', told(i.pod), i.node ? [' on ', told(i.node)] : null, i.restarts ? h('span', { class: 'warn' }, ` · ${i.restarts} restarts`) : null) : null),
      many ? h('h3', null, `${picked.length} picked: ${ids}`) : null,
      commands(i.mark === 'stopped' ? [['Run again', tapp('start', ns, name, ids)], ['Tell all', tapp('explain', ns, name, i.id)]]
        : many ? [['Give them new pods, within the budget', tapp('restart', ns, name, ids)], ['Stop them; identity and claims stay', tapp('kill', ns, name, ids)]]
          : [['Tell all that the planner says', tapp('explain', ns, name, i.id)], ['Give it a new pod, within the budget', tapp('restart', ns, name, i.id)]]),
      actions(session, i.mark === 'stopped' ? [['Start…', request('start', { ids })]] : [['Restart…', request('restart', { ids })], ['Kill…', request('kill', { ids })]]));
  }

  function drawTable() {
    const all = only ? list.filter((i) => (i.mark === 'ok' ? i.key : i.mark) === only) : list;
    let shown;
    [page, shown] = paged(pager, all, page, pageSize, (asked) => { page = asked; drawTable(); });
    sync(rows, shown, (i) => i.id, () => h('tr'), (e, i) => {
      const key = JSON.stringify(i);
      if (e.told === key) return;
      e.told = key;
      const m = stateMark(i.mark), v = marks.get(i.key);
      fill(e, h('th', { scope: 'row', class: 'num' }, printable(i.id)), h('td', null, state({ sign: m.sign || '✓', word: i.state, tone: m.tone })),
        h('td', null, h('span', { class: `sign ${v?.fill}`, 'aria-hidden': 'true' }, v?.sign), ' ', told(names.get(i.key))), h('td', null, since(i.since)), h('td', null, told(i.node)), h('td', null, told(i.why || i.next?.[0]?.why || '')));
    });
  }
  inspect();
}

const pair = (key, ...value) => h('div', null, h('dt', null, key), h('dd', null, ...value));

// heading of an object: what it is, how it is, what one would do.
export function heading(e, { kind, ns, name, s, next, actions: buttons }) {
  const key = s ? JSON.stringify(s) : 'none';
  if (e.told === key) return;
  e.told = key;
  fill(e, h('p', { class: 'crumb soft' }, h('a', { href: '#/' }, 'Overview'), ` / ${kind} / `, told(ns)),
    h('div', { class: 'title' }, h('h1', null, told(name)), s ? state(phaseMark(s.state)) : null, s?.paused && s.state !== 'Paused' ? state({ sign: '‖', word: 'Paused', tone: 'idle' }) : null),
    s ? h('dl', { class: 'figures' },
      figure('Available', h('span', { class: `num ${s.available < s.desired ? 'short' : ''}` }, `${s.available} of ${s.desired}`)),
      s.updated !== undefined && kind === 'TApp' ? figure('Updated', h('span', { class: 'num' }, String(s.updated))) : null,
      s.versions.length ? figure('Versions', versionList(s.versions)) : null,
      s.budget ? figure('Budget in use', h('span', { class: 'num' }, budgetWords(s.budget))) : null,
      s.created ? figure('Age', since(s.created)) : null) : h('p', { class: 'soft figures' }, '\u00a0'),
    s?.problems.length ? h('ul', { class: 'problems' }, s.problems.map((p) => h('li', { class: 'bad' }, told(p)))) : null,
    next ? h('div', { class: 'nexts' }, commands(next), buttons) : null);
}

const figure = (key, value) => h('div', null, h('dt', null, key), h('dd', null, value));

// ranges of ids, as the commands take them: 0-3,7.
export function ranges(ids) {
  const sorted = ids.map(Number).sort((a, b) => a - b);
  const out = [];
  for (let n = 0; n < sorted.length; n++) {
    const from = sorted[n];
    while (sorted[n + 1] === sorted[n] + 1) n++;
    out.push(from === sorted[n] ? `${from}` : `${from}-${sorted[n]}`);
  }
  return out.join(',');
}
