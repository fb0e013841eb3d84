// What the controllers would do about a manifest. Nothing is written.
import { post } from './client.js';
import { h, fill, printable, told, command } from './dom.js';
import { diff } from './history.js';
import { paths } from './wire.js';

const kinds = { tapp: 'tapps', appset: 'appsets', advdeployment: 'appsets' };

export function previewView({ main, session, signal }) {
  const text = h('textarea', { id: 'manifest', rows: '18', spellcheck: 'false', required: true, maxlength: '1500000', placeholder: 'apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata:\n  name: web\nspec:\n  …' });
  const out = h('div', { 'aria-live': 'polite' });
  const form = h('form', { class: 'preview', onsubmit: submit }, h('label', { for: 'manifest' }, 'A TApp or an AppSet, as YAML or JSON'), text,
    h('div', { class: 'actions' }, h('button', { class: 'primary' }, 'Preview')));
  fill(main, h('h1', null, 'Preview'), h('p', { class: 'soft' }, 'What would change, in which order, and what first. Nothing is written.'), form, out, h('p', { class: 'soft' }, 'The same in a shell:'), command('kubectl tapp plan -f manifest.yaml'));
  async function submit(e) {
    e.preventDefault();
    const said = about(text.value), kind = kinds[said.kind?.toLowerCase()];
    if (!kind) { fill(out, h('p', { class: 'bad', role: 'alert' }, 'kind: is missing, or is neither TApp nor AppSet.')); return; }
    const ns = said.namespace || session.namespace || 'default';
    fill(out, h('p', { class: 'soft' }, 'Asking the planner'));
    try {
      const plan = await post(paths.preview(kind, ns), text.value, text.value.trim().startsWith('{') ? 'application/json' : 'application/yaml');
      if (!signal.aborted) fill(out, h('h2', null, 'The plan'), shown(plan));
    } catch (err) {
      fill(out, h('p', { class: 'bad', role: 'alert' }, printable(err.message)));
    }
  }
}

// about says what the route has to name: the kind and the namespace of a manifest. It reads JSON,
// and of YAML as much as that takes; what it mistakes the server notices.
function about(text) {
  try {
    const o = JSON.parse(text);
    return { kind: String(o?.kind ?? ''), namespace: String(o?.metadata?.namespace ?? '') };
  } catch { /* YAML */ }
  const lines = text.split('\n'), from = lines.findIndex((l) => /^["']?metadata["']?\s*:/.test(l));
  let to = from + 1;
  while (from >= 0 && to < lines.length && /^(\s|#|$)/.test(lines[to])) to++;
  const metadata = from >= 0 ? lines.slice(from, to).join('\n') : /["']?metadata["']?\s*:\s*\{[^}]*\}/.exec(text)?.[0];
  return {
    kind: /(?:^|[{,])\s*["']?kind["']?\s*:\s*["']?(\w+)/m.exec(text)?.[1],
    namespace: /(?:^|[{,])\s*["']?namespace["']?\s*:\s*["']?([a-z0-9-]+)/m.exec(metadata ?? '')?.[1],
  };
}

// shown is the plan in the order in which one reads it.
function shown(plan) {
  if (plan.text) return h('pre', { tabindex: '0' }, printable(plan.text));
  const part = (title, list, each) => list?.length ? [h('h3', null, title), h('ol', { class: 'facts' }, list.map((x) => h('li', null, each(x))))] : [];
  const all = [
    part('What the controller cannot do', plan.problems, (p) => told(p, 'bad')),
    plan.created ? h('p', null, 'It would be created.') : plan.changes?.length ? [h('h3', null, 'What would change'), diff(plan.changes)] : h('p', null, 'The spec stays as it is.'),
    part('In this order', plan.sentences, (x) => told(x)),
    plan.paused ? h('p', { class: 'warn' }, 'Updates wait until spec.paused is false.') : null,
    part('First, as things are now', plan.first, (x) => [h('strong', null, printable(x.op)), ' ', told(x.why), h('span', { class: 'soft' }, ` (${x.ids?.length ?? 0} instances)`)]),
    part('Warnings', plan.warnings, (w) => told(w)),
  ];
  return h('div', { class: 'plan' }, all);
}
