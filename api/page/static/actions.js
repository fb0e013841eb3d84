// Actions exist only in `kubectl tapp dashboard`. Each shows its command and the plan
// first; what runs is the verb of the plugin, as the user.
import { post } from './client.js';
import { h, fill, command, printable, say } from './dom.js';

// actionsFor what needs attention: the one action that answers it.
export function actionsFor(a, session) {
  if (!session.actions) return null;
  const on = { kind: a.kind, namespace: a.ns, name: a.name };
  switch (a.severity) {
    case 'waiting': return actions(session, [['Confirm…', { ...on, verb: 'confirm', stage: a.stage }]]);
    case 'halted': return a.kind === 'apps' ? null : actions(session, [['Undo…', { ...on, verb: 'undo' }]]);
    case 'stalled': return a.kind === 'appsets' ? actions(session, [['Undo…', { ...on, verb: 'undo' }]]) : null;
    case 'paused': return a.kind === 'apps' ? null : actions(session, [['Resume…', { ...on, verb: 'resume' }]]);
  }
  return null;
}

// actions are buttons that open the dialog: [title, request]...
export function actions(session, list) {
  if (!session.actions) return null;
  return h('div', { class: 'actions' }, list.map(([title, request]) => h('button', { type: 'button', onclick: () => open(title, request) }, title)));
}

async function open(title, request) {
  const name = title.replace('…', '');
  const plan = h('div', { 'aria-live': 'polite' }, h('p', { class: 'soft' }, 'Asking for the plan'));
  const go = h('button', { class: 'primary', value: 'go', disabled: true }, name);
  const cancel = h('button', { type: 'button' }, 'Cancel');
  const dialog = h('dialog', { 'aria-labelledby': 'act' }, h('form', { method: 'dialog' },
    h('h2', { id: 'act' }, `${name}: `, h('bdi', null, printable(`${request.namespace}/${request.name}`))), plan,
    h('div', { class: 'actions' }, go, cancel)));
  const form = dialog.firstChild;
  cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  cancel.focus();
  let planned;
  try {
    planned = await post('actions/plan', request);
    fill(plan, command(planned.command), h('pre', { tabindex: '0', 'aria-label': 'The plan' }, printable(planned.text)));
    go.disabled = false;
  } catch (e) {
    fill(plan, h('p', { class: 'bad', role: 'alert' }, printable(e.message)));
  }
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    go.disabled = true;
    try {
      const done = await post('actions/run', request);
      say(done.text);
      fill(plan, h('p', { class: 'good' }, '✓ Done'), h('pre', null, printable(done.text)));
    } catch (err) {
      fill(plan, h('p', { class: 'bad', role: 'alert' }, printable(err.message)), command(planned.command));
    }
    go.hidden = true;
    cancel.textContent = 'Close';
    cancel.focus();
  });
}
