// One AppSet: its stages, and its clusters x podSets.
import { watch } from './client.js';
import { h, fill, sync, told, printable, since, state, command } from './dom.js';
import { marksOf, phaseMark, severities, stageMark } from './marks.js';
import { paths, summary, tapp, nextOf } from './wire.js';
import { actions, actionsFor } from './actions.js';
import { denied } from './overview.js';
import { heading } from './tapp.js';
import { historyOf, eventsOf } from './history.js';

export function appsetView({ main, session, signal, args: [ns, name] }) {
  const head = h('div', { class: 'object' });
  const needs = h('ul', { class: 'attention inline' });
  const stages = h('section', { 'aria-label': 'Stages' });
  const past = historyOf('appsets', ns, name, session, signal);
  const matrix = h('section', { class: 'matrix', 'aria-label': 'Clusters' });
  fill(main, head, needs, stages, matrix, h('div', { class: 'below' }, past.element, eventsOf('appsets', ns, name, signal)));
  heading(head, { kind: 'AppSet', ns, name });
  const request = (verb, more) => ({ kind: 'appsets', namespace: ns, name, verb, ...more });
  watch(paths.object('appsets', ns, name), {
    object: show,
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

  // clusters x groups: podSets of the same group stand below each other.
  function clusters(s) {
    const columns = [...new Set(s.clusters.flatMap((c) => (c.podSets ?? []).map(groupOf)))].sort((a, b) => rank(a) - rank(b));
    const versions = marksOf(s.clusters.flatMap((c) => (c.podSets ?? []).flatMap((p) => (p.version ?? '').split('/'))).concat(s.versions.map((v) => v.key)));
    fill(matrix, h('h2', null, 'Clusters'), h('div', { class: 'tabular' }, h('table', null, h('thead', null, h('tr', null, ['Cluster', 'State', 'Available', ...columns].map((c) => h('th', { scope: 'col' }, told(c))))),
      h('tbody', null, s.clusters.map((c) => h('tr', null, h('th', { scope: 'row' }, told(c.name)),
        h('td', null, state(phaseMark(c.state || 'Ready')), c.asOf ? h('p', { class: 'soft' }, since(c.asOf, 'as of ', ' ago')) : null, c.message ? h('p', { class: 'soft' }, told(c.message)) : null),
        h('td', { class: `num ${(c.available ?? 0) < (c.desired ?? 0) ? 'short' : ''}` }, `${c.available ?? 0} of ${c.desired ?? 0}`),
        columns.map((k) => h('td', null, units((c.podSets ?? []).filter((p) => groupOf(p) === k), versions)))))))));
  }
}

const groups = ['canary', 'blue', 'green'];
const groupOf = (p) => p.group || /-(canary|blue|green|svc)$/.exec(p.name)?.[1] || p.name;
const rank = (group) => (groups.includes(group) ? groups.indexOf(group) : groups.length);

function units(list, versions) {
  if (!list.length) return h('span', { class: 'soft' }, '·', h('span', { class: 'hide' }, 'none'));
  return list.map((p) => [h('div', { class: 'unit' }, h('span', { class: 'soft' }, told(p.name)),
    (p.version ?? '').split('/').filter(Boolean).map((v) => h('span', null, h('span', { class: `sign ${versions.get(v)?.fill}`, 'aria-hidden': 'true' }, versions.get(v)?.sign), ' ', told(v))),
    h('span', { class: `num ${p.available < p.desired ? 'short' : 'soft'}` }, `${p.available} of ${p.desired}`)),
  p.message ? h('p', { class: p.reason && /fail|stall|halt/i.test(p.reason) ? 'bad' : 'soft' }, told(p.message)) : null]);
}
