// History with differences, and events: below every object.
import { get, serves } from './client.js';
import { h, fill, told, printable, since, command } from './dom.js';
import { paths, tapp } from './wire.js';
import { actions } from './actions.js';

export function historyOf(kind, ns, name, session, signal) {
  const body = h('div', null, h('p', { class: 'soft' }, 'Reading'));
  const fleet = kind === 'appsets';
  const element = h('section', { 'aria-label': 'History' }, h('h2', null, 'History'), body);
  const read = () => get(paths.part(kind, ns, name, 'history'), signal).then((list) => {
    const items = [...(list.items ?? [])].sort((a, b) => b.revision - a.revision);
    fill(body, items.length ? h('ol', { class: 'history' }, items.map((r) => h('li', null,
      h('div', { class: 'rev' }, h('strong', { class: 'num' }, `Revision ${r.revision}`), r.update ? h('span', { class: 'good' }, '✓ the present spec') : null,
        r.current && !r.update ? h('span', { class: 'soft' }, 'last rolled out') : null, h('span', { class: 'soft' }, since(r.created, '', ' ago'))),
      r.change ? h('p', null, told(r.change)) : null,
      r.changes?.length ? h('details', null, h('summary', null, `What revision ${r.revision} changed`), diff(r.changes)) : null,
      r.update ? null : command(r.command || tapp(fleet ? 'fleet undo' : 'undo', ns, name, '--to-revision', String(r.revision))),
      r.update ? null : actions(session, [['Return to it…', { kind, namespace: ns, name, verb: 'undo', revision: String(r.revision) }]]))))
      : h('p', { class: 'soft' }, 'No revision yet.'));
  }).catch((e) => fail(body, e, signal));
  const known = serves(`/api/v1/namespaces/{namespace}/${kind}/{name}/history`, signal);
  let seen = null;
  // follow reads it again when the object has another version.
  const follow = (version) => { if (seen !== version) { seen = version; known.then((has) => { if (has) read(); else element.hidden = true; }); } };
  return { element, follow };
}

// diff shows fields as they were and as they are: its signs say what its colours say.
export function diff(changes) {
  const lines = (sign, value) => value === undefined ? [] : pretty(value).split('\n').map((line) => [sign, `${sign} ${line}`]);
  return h('pre', { class: 'diff', tabindex: '0' }, changes.flatMap((c) => [['@', c.path], ...lines('-', c.from), ...lines('+', c.to)]).map(([sign, line]) =>
    h('span', { class: sign === '+' ? 'plus' : sign === '-' ? 'minus' : 'soft' }, printable(line) + '\n')));
}

const pretty = (value) => typeof value === 'string' ? value : JSON.stringify(value, null, 2);

export function eventsOf(kind, ns, name, signal) {
  const body = h('div', null, h('p', { class: 'soft' }, 'Reading'));
  const read = () => get(paths.part(kind, ns, name, 'events'), signal).then((list) => {
    const items = (list.items ?? []).map(flat).sort((a, b) => Date.parse(b.at ?? 0) - Date.parse(a.at ?? 0)).slice(0, 50);
    fill(body, items.length ? h('ul', { class: 'events' }, items.map((e) => h('li', null,
      h('span', { class: 'soft' }, since(e.at)), h('strong', { class: e.type === 'Warning' ? 'warn' : '' }, e.type === 'Warning' ? '! ' : '', printable(e.reason)), h('p', null, told(e.message), e.count > 1 ? h('span', { class: 'soft num' }, ` ×${e.count}`) : null))))
      : h('p', { class: 'soft' }, 'No events.'));
  }).catch((e) => fail(body, e, signal));
  read();
  const timer = setInterval(read, 15000);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  return h('section', { 'aria-label': 'Events' }, h('h2', null, 'Events'), body);
}

// flat is what is shown of an event.
function flat(e) {
  return { type: e.type, reason: e.reason, message: e.message, at: e.last ?? e.first, count: e.count ?? 1 };
}

function fail(body, e, signal) {
  if (signal.aborted) return;
  fill(body, h('p', { class: e.code === 404 ? 'soft' : 'warn' }, printable(e.message)));
}
