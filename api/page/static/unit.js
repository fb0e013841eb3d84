// The instances of one podSet in one cluster of the fleet. The cluster is asked live, as long
// as they are shown.
import { get, serves, Refused } from './client.js';
import { h, fill, sync, paged, told, printable, since, state, commands, command, say } from './dom.js';
import { stateMark } from './marks.js';
import { paths, tapp, word } from './wire.js';

const pageSize = 100, again = 5000;

// unitPanel is empty until show names a podSet; changed is called when it shows another one.
export function unitPanel(ns, name, signal, changed) {
  const title = h('h2', { id: 'unit-title', tabindex: '-1' });
  const note = h('div', { 'aria-live': 'polite' });
  const rows = h('tbody');
  const pager = h('div', { class: 'actions pager' });
  const table = h('div', { class: 'tabular', hidden: true }, h('table', { 'aria-labelledby': 'unit-title' },
    h('thead', null, h('tr', null, ['Id', 'Pod', 'State', 'Version', 'Age', 'Node', 'Why'].map((t) => h('th', { scope: 'col' }, t)))), rows), pager);
  const next = h('div');
  const close = h('button', { type: 'button', onclick: () => hide() }, 'Close');
  const element = h('section', { class: 'unit-panel', id: 'unit', 'aria-labelledby': 'unit-title', hidden: true },
    h('div', { class: 'tools' }, title, close), note, table, next);
  let unit = null, list = [], page = 0, own = null;

  const key = () => unit && `${unit.cluster}/${unit.podSet}`;

  // toggle is what a press does: it takes the focus along.
  function toggle(wanted) {
    if (key() === `${wanted.cluster}/${wanted.podSet}`) { hide(); return; }
    show(wanted);
    title.focus({ preventScroll: true });
    element.scrollIntoView({ block: 'nearest' });
  }

  function show(wanted) {
    own?.abort();
    own = new AbortController();
    const mine = own.signal;
    signal.addEventListener('abort', () => own?.abort(), { once: true, signal: mine });
    unit = wanted;
    list = [];
    page = 0;
    element.hidden = false;
    table.hidden = true;
    fill(title, 'Instances of ', told(unit.podSet), ' in ', told(unit.cluster));
    fill(note, h('p', { class: 'soft' }, 'Asking the cluster'));
    fill(next, commands([['What comes next for it, and why', tapp('fleet explain', ns, name)],
      ['Its pods, in that cluster', `kubectl --context ${word(unit.cluster)} get pods -n ${word(ns)} -l ${word(`release=${unit.podSet}`)}`]]));
    changed();
    follow(mine);
  }

  function hide() {
    const back = key();
    own?.abort();
    unit = null;
    element.hidden = true;
    changed();
    [...document.querySelectorAll('.matrix button')].find((b) => b.dataset.unit === back)?.focus();
  }

  async function follow(mine) {
    if (!await serves('/api/v1/namespaces/{namespace}/appsets/{name}/instances', mine)) {
      fill(note, h('p', { class: 'soft' }, 'This server does not read the clusters of AppSets.'));
      return;
    }
    while (!mine.aborted) {
      try {
        take(await get(paths.unit(ns, name, unit.cluster), mine));
      } catch (e) {
        if (mine.aborted) return;
        fail(e);
        if (e.code === 401) return;
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, again);
        mine.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
      });
    }
  }

  function take(answer) {
    const first = table.hidden;
    list = (answer.items ?? []).filter((i) => i.podSet === unit.podSet);
    const silent = (answer.clusters ?? []).find((c) => c.error);
    const short = !silent && list.length < unit.desired;
    fill(note, silent ? h('p', { class: 'denied', role: 'status' }, state({ sign: '?', word: 'The cluster did not answer', tone: 'quiet' }), ' ', told(silent.error)) : [],
      (answer.clusters ?? []).some((c) => c.truncated) ? h('p', { class: 'warn' }, 'The cluster has more pods than are read; these are the first ones.') : [],
      short ? h('p', { class: 'soft' }, `${unit.desired} are desired, and ${list.length} ${list.length === 1 ? 'has' : 'have'} a pod.`) : []);
    table.hidden = list.length === 0;
    draw();
    if (first && list.length) say(`${list.length} instances of ${unit.podSet}`);
  }

  function fail(e) {
    const forbidden = e instanceof Refused && e.code === 403;
    fill(note, h('div', { class: 'denied', role: 'alert' }, state({ sign: '⊘', word: forbidden ? 'You may not see these instances' : 'The instances cannot be shown', tone: 'warn' }),
      h('p', null, told(e.message)), forbidden ? command(`kubectl auth can-i get ${word(`appsets.workload.dmall.com/${name}`)} --subresource=instances -n ${word(ns)}`) : null,
      e instanceof Refused && e.code === 404 ? command(tapp('fleet get', ns, name)) : null));
  }

  function draw() {
    let there;
    [page, there] = paged(pager, list, page, pageSize, (asked) => { page = asked; draw(); });
    sync(rows, there, (i) => i.uid, () => h('tr'), (e, i) => {
      const text = JSON.stringify(i);
      if (e.told === text) return;
      e.told = text;
      const v = unit.versions.get(i.version);
      fill(e, h('th', { scope: 'row', class: 'num' }, printable(i.id || '·')), h('td', null, told(i.name)), h('td', null, stateOfPod(i)),
        h('td', null, v ? h('span', { class: `sign ${v.fill}`, 'aria-hidden': 'true' }, v.sign) : null, ' ', told(i.version || '')),
        h('td', null, since(i.created)), h('td', null, told(i.node ?? '')), h('td', null, told(whyOf(i))));
    });
  }

  // know what the AppSet says of the podSet now.
  function know(clusters, versions) {
    if (!unit) return;
    const p = clusters.find((c) => c.name === unit.cluster)?.podSets?.find((one) => one.name === unit.podSet);
    unit = { ...unit, desired: p?.desired ?? 0, versions };
  }

  return { element, show, toggle, know, shown: key };
}

function stateOfPod(i) {
  const name = i.deleting ? 'going' : i.phase === 'Failed' ? 'failed' : i.phase === 'Succeeded' ? 'done' : i.phase === 'Unknown' ? 'lost' : i.ready ? 'ok' : 'pending';
  const m = stateMark(name);
  return state({ sign: m.sign || '✓', word: i.ready && name === 'ok' ? 'Ready' : i.deleting ? 'Terminating' : i.phase, tone: m.tone });
}

// whyOf a pod that is not ready: what its containers say, or the condition that is not met.
function whyOf(i) {
  if (i.ready && !i.deleting) return restarts(i);
  const waits = (i.containers ?? []).filter((c) => !c.ready && !/^(running|unknown|ended with exit code 0)/.test(c.state ?? '')).map((c) => `${c.name}: ${c.state}`);
  const unmet = (i.conditions ?? []).filter((c) => c.status === 'False' && c.message).map((c) => c.message);
  return [...(waits.length ? waits : unmet), restarts(i)].filter(Boolean).join('; ');
}

function restarts(i) {
  const n = (i.containers ?? []).reduce((sum, c) => sum + (c.restarts ?? 0), 0);
  return n ? `${n} ${n === 1 ? 'restart' : 'restarts'}` : '';
}
