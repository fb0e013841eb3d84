// The page: routes in the fragment, the session, the state of the connection.
import { setToken, hasToken, whenRefused, whenLink } from './client.js';
import { h, fill, setText, age } from './dom.js';
import { overview } from './overview.js';
import { tappView } from './tapp.js';
import { appsetView } from './appset.js';
import { appView } from './app.js';
import { clustersView, clusterView } from './clusters.js';
import { previewView } from './preview.js';

const main = document.getElementById('main');
const views = [
  [/^$/, 'Overview', overview],
  [/^tapps\/([^/]+)\/([^/]+)$/, 'TApp', tappView],
  [/^appsets\/([^/]+)\/([^/]+)$/, 'AppSet', appsetView],
  [/^apps\/([^/]+)\/([^/]+)$/, 'App', appView],
  [/^clusters$/, 'Clusters', clustersView],
  [/^clusters\/([^/]+)$/, 'Cluster', clusterView],
  [/^preview$/, 'Preview', previewView],
];

// session is what all views share.
const session = { actions: false, namespace: '' };
let running = new AbortController();
let shown = null;

function show() {
  running.abort();
  running = new AbortController();
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  session.namespace = new URLSearchParams(query ?? '').get('ns') ?? session.namespace;
  document.getElementById('namespace').value = session.namespace;
  for (const a of document.querySelectorAll('#nav a')) {
    const on = a.getAttribute('href') === `#/${path}`;
    if (on) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  }
  for (const [pattern, title, view] of views) {
    const found = pattern.exec(path);
    if (!found) continue;
    let args;
    try { args = found.slice(1).map(decodeURIComponent); } catch { break; }
    document.title = [args.at(-1), title, 'TApp'].filter(Boolean).join(' · ');
    const moved = shown !== null && shown !== path;
    shown = path;
    fill(main);
    view({ main, session, signal: running.signal, args, query: new URLSearchParams(query ?? '') });
    if (moved) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
    return;
  }
  fill(main, h('h1', null, 'There is no such view'), h('p', null, h('a', { href: '#/' }, 'Overview')));
}

// login asks for a token. It comes after a 401, in place of the view.
function login(message) {
  running.abort();
  const field = h('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true });
  const told = hasToken() ? `The server did not take the token: ${message || 'it is not valid, or it has expired'}.` : '';
  setToken('');
  const form = h('form', { class: 'login', onsubmit: (e) => { e.preventDefault(); setToken(field.value.trim()); field.value = ''; show(); } },
    h('h1', null, 'Who are you?'),
    h('p', null, session.actions
      ? 'This page has lost its token, which is kept in memory only. Open the address again that kubectl tapp dashboard has printed.'
      : 'The page shows what your token of Kubernetes may see. The token is kept in memory until this page is closed.'),
    told ? h('p', { class: 'bad', role: 'alert' }, told) : null,
    h('label', { for: 'token' }, 'Token'), field,
    h('button', { class: 'primary' }, 'Show'));
  fill(main, form);
  field.focus();
}

const linkState = document.getElementById('link'), linkText = document.getElementById('link-text'), banner = document.getElementById('banner');
let down = null;

function link(state) {
  linkState.className = `link ${state.live ? 'live' : state.count ? 'down' : ''}`;
  setText(linkText, state.live ? 'Live' : state.count ? 'Not connected' : 'No stream');
  down = state.count && !state.live ? state.since : null;
  remind();
}

// remind says how old the picture is while the server is away.
function remind() {
  const late = down !== null && Date.now() - down > 1500;
  banner.hidden = !late;
  if (late) setText(banner, `No connection to the server for ${age(down)}. What is shown is as of ${new Date(down).toLocaleTimeString()}; the page tries again by itself.`);
}
setInterval(remind, 1000);

document.getElementById('scope').addEventListener('submit', (e) => { e.preventDefault(); scope(); });
document.getElementById('namespace').addEventListener('change', scope);
document.getElementById('skip').addEventListener('click', (e) => { e.preventDefault(); main.focus(); });

function scope() {
  session.namespace = document.getElementById('namespace').value.trim();
  if (/^#?\/?(clusters|\?.*)?$/.test(location.hash)) show(); else location.hash = '#/';
}

// A hidden page holds no stream: browsers have few connections for each server.
let hidden;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(() => { running.abort(); hidden = null; }, 60000);
  else if (hidden === null) { hidden = undefined; show(); }
});

whenRefused(login);
whenLink(link);
addEventListener('hashchange', show);

// The dashboard of kubectl puts the token into the fragment, which no server gets; it
// leaves the address at once.
const given = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
if (given) {
  setToken(given[1]);
  history.replaceState(null, '', `${location.pathname}#/`);
}
fetch('config.json', { cache: 'no-store', credentials: 'omit' }).then((r) => r.json()).then((config) => {
  session.actions = !!config.actions;
  session.namespace = config.namespace ?? '';
}).catch(() => {}).finally(show);
