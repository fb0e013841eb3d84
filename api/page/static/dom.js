// Elements, made of text only: nothing that a cluster says is ever read as HTML.

// h makes an element. Properties: class, on<event>, data, aria-*, and attributes;
// null and false leave one out. Children: nodes, texts, arrays.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'class') e.className = value;
    else if (key === 'value') e.value = value;
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// fill gives an element other children.
export function fill(e, ...children) {
  e.replaceChildren(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// setText writes only what differs, so that nothing is laid out anew for nothing.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// told is text of the cluster: isolated, so that its direction turns nothing around it.
export function told(text, cls) {
  return h('bdi', { class: cls }, printable(text));
}

// printable shows characters that would be invisible, or change what is beside them.
export function printable(text) {
  return String(text ?? '').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// sync makes the children of a container follow a list, and keeps the elements of those
// that stay: focus and selection survive an update.
export function sync(container, list, key, make, update) {
  const old = container.known ?? new Map();
  const now = new Map();
  let at = container.firstElementChild;
  for (const item of list) {
    const k = key(item);
    let e = old.get(k);
    if (!e) e = make(item);
    update?.(e, item);
    now.set(k, e);
    if (e === at) at = at.nextElementSibling;
    else container.insertBefore(e, at);
  }
  for (const [k, e] of old) if (now.get(k) !== e) e.remove();
  container.known = now;
}

// paged shows in pager how to turn the pages of a list, if it has more than one, and returns
// the number of the page that is there and its items. turn is told which one is asked for.
export function paged(pager, list, page, size, turn) {
  const pages = Math.max(1, Math.ceil(list.length / size));
  page = Math.min(page, pages - 1);
  fill(pager, pages < 2 ? [] : [h('button', { type: 'button', disabled: page === 0, onclick: () => turn(page - 1) }, 'Previous'),
    h('span', { class: 'num soft' }, `${page * size + 1} to ${Math.min(list.length, (page + 1) * size)} of ${list.length}`),
    h('button', { type: 'button', disabled: page === pages - 1, onclick: () => turn(page + 1) }, 'Next')]);
  return [page, list.slice(page * size, (page + 1) * size)];
}

// age as kubectl writes it.
export function age(at, now = Date.now()) {
  const s = Math.max(0, Math.round((now - at) / 1000));
  if (s < 120) return `${s}s`;
  if (s < 600) return `${Math.floor(s / 60)}m${s % 60 ? `${s % 60}s` : ''}`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// since is an age that goes on.
export function since(at, before = '', after = '') {
  const t = Date.parse(at ?? '');
  if (Number.isNaN(t)) return null;
  const e = h('time', { class: 'num', datetime: at, title: new Date(t).toLocaleString(), 'data-before': before, 'data-after': after });
  tick(e);
  return e;
}

function tick(e) {
  setText(e, e.dataset.before + age(Date.parse(e.getAttribute('datetime'))) + e.dataset.after);
}

setInterval(() => document.querySelectorAll('time[data-before]').forEach(tick), 1000);

// say tells a screen reader.
export function say(text) {
  setText(document.getElementById('said'), text);
}

// command is one to copy.
export function command(text) {
  const button = h('button', { type: 'button', 'aria-label': `Copy: ${text}` }, 'Copy');
  button.addEventListener('click', async () => {
    let done = 'Copied';
    try {
      await navigator.clipboard.writeText(text);
    } catch { // No clipboard without TLS: what is selected can be copied by hand.
      getSelection().selectAllChildren(button.previousSibling);
      done = 'Selected';
    }
    setText(button, done);
    say(`${done}: ${text}`);
    setTimeout(() => setText(button, 'Copy'), 2000);
  });
  // A line breaks between words, and not at their hyphens.
  const words = printable(text).split(' ').flatMap((w, n) => [n ? ' ' : null, h('span', null, w)]);
  return h('div', { class: 'command' }, h('code', { translate: 'no' }, words), button);
}

// commands are several, each with what it does.
export function commands(list) {
  return h('ul', { class: 'commands' }, list.map(([what, text]) => h('li', null, h('span', null, what), command(text))));
}

// state is a word with its sign.
export function state({ sign, word, tone }) {
  return h('span', { class: `state ${tone}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, sign), h('span', null, printable(word)));
}
