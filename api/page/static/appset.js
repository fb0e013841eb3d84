// One AppSet: its stages, its clusters x groups, and the instances of a podSet in a cluster.
import { watch } from './client.js';
import { h, fill, sync, told, printable, since, state, command } from './dom.js';
import { marksOf, phaseMark, severities, stageMark } from './marks.js';
import { paths, summary, tapp, nextOf } from './wire.js';
import { actions, actionsFor } from './actions.js';
import { denied, staleness } from './overview.js';
import { heading } from './tapp.js';
import { historyOf, eventsOf } from './history.js';
import { unitPanel } from './unit.js';

export function appsetView({ main, session, signal, args: [ns, name], query }) {
  const head = h('div', { class: 'object' });
  const needs = h('ul', { class: 'attention inline' });
  const stale = h('div');
  const stages = h('section', { 'aria-label': 'Stages' });
  const past = historyOf('appsets', ns, name, session, signal);
  const matrix = h('section', { class: 'matrix', 'aria-label': 'Clusters' });
  const panel = unitPanel(ns, name, signal, () => marked());
  fill(main, head, stale, needs, stages, matrix, panel.element, h('div', { class: 'below' }, past.element, eventsOf('appsets', ns, name, signal)));
  heading(head, { kind: 'AppSet', ns, name });
  let asked = query.get('unit'); // <cluster>/<podSet>: whose instances the address asks for
  const request = (verb, more) => ({ kind: 'appsets', namespace: ns, name, verb, ...more });
  watch(paths.object('appsets', ns, name), {
    object: show,
    health: (d) => fill(stale, d.degraded ? staleness('This', d) : []),
    refused: (e) => fill(head, h('h1', null, told(name)), e.code === 404 ? h('p', null, `There is no AppSet ${name} in namespace ${ns}.`) : denied('appsets', e, { namespace: ns })),
  }, signal);

  function show(o) {
    const s = summary('appsets', o);
    past.follow([o.generation, o.rollout?.id].join());
    heading(head, { kind: 'AppSet', ns, name, s, next: s.commands.length ? s.commands : [
      ['What comes next, and why', tapp('fleet explain', ns, name)],
      s.paused ? ['Let the rollout go on', tapp('fleet resume', ns, name)] : ['Hold the rollout', tapp('fleet pause', ns, name)],
    ], actions: actions(session, [s.paused ? ['Resume…', request('resume')] : ['Pause…', request('pause')]]) });
    sync(needs, s.attention, (a) => JSON.stringify(a), (a) => h('li', { class: `need ${severities[a.severity].tone}` },
      h('div', { class: 'what' }, state(severities[a.severity]), since(a.since, 'for ')), h('p', { class: 'why' }, told(a.message || a.reason)),
      h('div', { class: 'do' }, command(nextOf(a)), actionsFor(a, session))));
    fill(stages, s.stages.length ? [h('h2', null, 'Stages'), h('ol', { class: 'stage-cards' }, s.stages.map((stage) => {
      const m = stageMark(stage.state);
      return h('li', { class: m.tone }, h('h3', null, told(stage.name)), state(m), h('p', { class: 'soft num' },
        `${stage.done ?? 0} of ${stage.podSets ?? 0} podSets done`, stage.failed ? h('span', { class: 'bad' }, `, ${stage.failed} failed`) : null),
      stage.confirmedBy ? h('p', { class: 'soft' }, 'confirmed by ', told(stage.confirmedBy)) : null,
      stage.finished ? h('p', { class: 'soft' }, since(stage.finished, 'done ', ' ago')) : stage.started ? h('p', { class: 'soft' }, since(stage.started, 'begun ', ' ago')) : null);
    }))] : []);
    clusters(s);
  }

  // clusters x groups: podSets of the same group stand below each other. A press on one shows
  // its instances.
  function clusters(s) {
    const key = JSON.stringify([s.clusters, s.versions]);
    if (matrix.told === key) return;
    matrix.told = key;
    const focused = document.activeElement?.closest?.('.matrix') ? document.activeElement.dataset.unit : null;
    const columns = [...new Set(s.clusters.flatMap((c) => (c.podSets ?? []).map(groupOf)))].sort((a, b) => rank(a) - rank(b));
    const versions = marksOf(s.clusters.flatMap((c) => (c.podSets ?? []).flatMap((p) => (p.version ?? '').split('/'))).concat(s.versions.map((v) => v.key)));
    const unit = (c, p) => ({ cluster: c.name, podSet: p.name, desired: p.desired ?? 0, versions });
    const choose = (c, p) => panel.toggle(unit(c, p));
    fill(matrix, h('h2', null, 'Clusters'), h('div', { class: 'tabular' }, h('table', null, h('thead', null, h('tr', null, ['Cluster', 'State', 'Available', ...columns].map((c) => h('th', { scope: 'col' }, told(c))))),
      h('tbody', null, s.clusters.map((c) => h('tr', null, h('th', { scope: 'row' }, told(c.name)),
        h('td', null, state(phaseMark(c.state || 'Ready')), c.asOf ? h('p', { class: 'soft' }, since(c.asOf, 'as of ', ' ago')) : null, c.message ? h('p', { class: 'soft' }, told(c.message)) : null),
        h('td', { class: `num ${(c.available ?? 0) < (c.desired ?? 0) ? 'short' : ''}` }, `${c.available ?? 0} of ${c.desired ?? 0}`),
        columns.map((k) => h('td', null, units(c, (c.podSets ?? []).filter((p) => groupOf(p) === k), versions, choose)))))))));
    panel.know(s.clusters, versions);
    for (const c of s.clusters) for (const p of c.podSets ?? []) if (asked === `${c.name}/${p.name}`) { asked = null; panel.show(unit(c, p)); }
    marked();
    if (focused) [...matrix.querySelectorAll('button')].find((b) => b.dataset.unit === focused)?.focus();
  }

  // marked says which podSet's instances are shown.
  function marked() {
    const shown = panel.shown();
    if (!asked) history.replaceState(null, '', location.hash.split('?')[0] + (shown ? `?unit=${encodeURIComponent(shown)}` : ''));
    for (const b of matrix.querySelectorAll('button')) b.setAttribute('aria-pressed', String(b.dataset.unit === shown));
  }
}

const groups = ['canary', 'blue', 'green'];
const groupOf = (p) => p.group || /-(canary|blue|green|svc)$/.exec(p.name)?.[1] || p.name;
const rank = (group) => (groups.includes(group) ? groups.indexOf(group) : groups.length);

function units(cluster, list, versions, choose) {
  if (!list.length) return h('span', { class: 'soft' }, '·', h('span', { class: 'hide' }, 'none'));
  return list.map((p) => [h('div', { class: 'unit' },
    h('button', { type: 'button', 'aria-pressed': 'false', 'aria-controls': 'unit', 'data-unit': `${cluster.name}/${p.name}`, 'aria-label': `Instances of ${printable(p.name)} in ${printable(cluster.name)}`, onclick: () => choose(cluster, p) }, told(p.name)),
    (p.version ?? '').split('/').filter(Boolean).map((v) => h('span', null, h('span', { class: `sign ${versions.get(v)?.fill}`, 'aria-hidden': 'true' }, versions.get(v)?.sign), ' ', told(v))),
    h('span', { class: `num ${p.available < p.desired ? 'short' : 'soft'}` }, `${p.available} of ${p.desired}`)),
  p.message ? h('p', { class: p.reason && /fail|stall|halt/i.test(p.reason) ? 'bad' : 'soft' }, told(p.message)) : null]);
}
