// The clusters of the fleet, the silent ones first.
import { poll, serves } from './client.js';
import { h, fill, told, since, state, command } from './dom.js';
import { phaseMark } from './marks.js';
import { paths } from './wire.js';
import { denied } from './overview.js';

export function clustersView({ main, signal }) {
  const known = new Map();
  const body = h('div');
  fill(main, h('h1', null, 'Clusters'), body);
  const alone = () => fill(body, h('p', { class: 'soft' }, 'There is no fleet here: this is a cluster by itself.'));
  const handlers = {
    list: (l) => { known.clear(); for (const c of l.items ?? []) known.set(c.name, c); draw(); },
    refused: (e) => { if (e.code === 404) alone(); else fill(body, denied('clusters', e, { namespace: '' })); },
  };
  serves('/api/v1/clusters', signal).then((known) => { if (known) poll(paths.clusters(), handlers, signal); else if (!signal.aborted) alone(); });
  function draw() {
    const rank = (c) => (c.state === 'Ready' ? 1 : 0);
    const list = [...known.values()].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
    fill(body, list.length ? h('div', { class: 'tabular' }, h('table', null, h('thead', null, h('tr', null, ['Cluster', 'State', 'Known as of', 'Why', 'Labels'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', null, list.map((c) => h('tr', null, h('th', { scope: 'row' }, told(c.name)), h('td', null, state(phaseMark(c.state))), h('td', null, since(c.asOf, '', ' ago') ?? 'now'),
        h('td', null, told(c.message || c.reason || '')), h('td', { class: 'soft' }, told(Object.entries(c.meta ?? {}).map(([k, v]) => `${k}=${v}`).join(', '))))))))
      : h('p', { class: 'soft' }, 'No cluster is registered: this is a cluster by itself.'), command('kubectl tapp fleet clusters'));
  }
}
