// The clusters of the fleet, the silent ones first.
import { poll, serves } from './client.js';
import { h, fill, paged, told, since, state, command } from './dom.js';
import { phaseMark } from './marks.js';
import { paths, link, clusterLink, word } from './wire.js';
import { denied, staleness } from './overview.js';

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
      h('tbody', null, list.map((c) => h('tr', null, h('th', { scope: 'row' }, h('a', { href: clusterLink(c.name) }, told(c.name))), h('td', null, state(phaseMark(c.state))), h('td', null, since(c.asOf, '', ' ago') ?? 'now'),
        h('td', null, told(c.message || c.reason || '')), h('td', { class: 'soft' }, told(Object.entries(c.meta ?? {}).map(([k, v]) => `${k}=${v}`).join(', '))))))))
      : h('p', { class: 'soft' }, 'No cluster is registered: this is a cluster by itself.'), command('kubectl tapp fleet clusters'));
  }
}

const pageSize = 100;

// One cluster: the parts of AppSets in it, as they were seen last.
export function clusterView({ main, signal, args: [name] }) {
  const note = h('div', { 'aria-live': 'polite' });
  const rows = h('tbody'), pager = h('div', { class: 'actions pager' });
  const table = h('div', { class: 'tabular', hidden: true }, h('table', { 'aria-labelledby': 'cluster' },
    h('thead', null, h('tr', null, ['AppSet', 'State', 'Version', 'Available', 'Known as of'].map((t) => h('th', { scope: 'col' }, t)))), rows), pager);
  fill(main, h('h1', { id: 'cluster' }, told(name)), note, table, command('kubectl tapp fleet clusters'), command(`kubectl --context ${word(name)} get advdeployments --all-namespaces`));
  let list = [], page = 0;
  poll(paths.parts(name), {
    list: (l) => {
      list = l.items ?? [];
      fill(note, l.degraded ? staleness('The cluster', { degraded: list[0]?.message || l.degraded, asOf: list[0]?.asOf }) : [],
        list.length ? [] : h('p', { class: 'soft' }, 'No part of an AppSet is known in it.'),
        l.total > list.length ? h('p', { class: 'soft' }, `These are ${list.length} of ${l.total}.`) : []);
      draw();
    },
    refused: (e) => { list = []; draw(); fill(note, e.code === 404 ? h('p', { class: 'soft' }, told(e.message)) : denied('appsets', e, { namespace: '' })); },
  }, signal);
  function draw() {
    let there;
    [page, there] = paged(pager, list, page, pageSize, (asked) => { page = asked; draw(); });
    table.hidden = list.length === 0;
    fill(rows, there.map((p) => {
      const [ns, appSet] = p.appSet.split('/');
      return h('tr', null, h('th', { scope: 'row' }, h('a', { href: link('appsets', ns, appSet) }, h('span', { class: 'soft' }, told(ns), '/'), told(appSet))),
        h('td', null, state(phaseMark(p.phase || 'Pending'))), h('td', null, told(p.version ?? '')),
        h('td', { class: `num ${p.available < p.desired ? 'short' : ''}` }, `${p.available} of ${p.desired}`), h('td', null, since(p.asOf, '', ' ago') ?? 'now'));
    }));
  }
}
