// One App: its state, its conditions, its events.
import { watch } from './client.js';
import { h, fill, told, since, state } from './dom.js';
import { paths, summary, word } from './wire.js';
import { denied, staleness } from './overview.js';
import { heading } from './tapp.js';
import { eventsOf } from './history.js';

export function appView({ main, signal, args: [ns, name] }) {
  const head = h('div', { class: 'object' });
  const conditions = h('section', { 'aria-label': 'Conditions' });
  const stale = h('div');
  fill(main, head, stale, conditions, h('div', { class: 'below' }, eventsOf('apps', ns, name, signal)));
  heading(head, { kind: 'App', ns, name });
  watch(paths.object('apps', ns, name), {
    object: (o) => {
      const s = summary('apps', o);
      heading(head, { kind: 'App', ns, name, s, next: s.commands.length ? s.commands : [
        ['Its Deployment and Service', `kubectl get deployments,services,pods -n ${word(ns)} -l app=${word(name)}`],
        ['All that is known of it', `kubectl describe app -n ${word(ns)} ${word(name)}`],
      ] });
      fill(conditions, s.conditions.length ? [h('h2', null, 'Conditions'), h('ul', { class: 'events' }, s.conditions.map((c) => h('li', null,
        h('span', { class: 'soft' }, since(c.lastTransitionTime)), state({ sign: c.status === 'True' ? '✓' : c.status === 'False' ? '–' : '?', word: c.type, tone: c.type === 'Stalled' && c.status === 'True' ? 'bad' : 'idle' }),
        h('p', null, told(c.message || c.reason)))))] : []);
    },
    health: (d) => fill(stale, d.degraded ? staleness('This', d) : []),
    refused: (e) => fill(head, h('h1', null, told(name)), e.code === 404 ? h('p', null, `There is no App ${name} in namespace ${ns}.`) : denied('apps', e, { namespace: ns })),
  }, signal);
}
