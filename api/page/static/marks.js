// Signs, words and colours: one meaning, one mark, everywhere on the page.

// Versions have a colour and a sign. Both follow from the version alone, so that they
// stay when a rollout ends; two versions of one object never share them.
const signs = ['●', '▲', '■', '◆', '✚', '★'];

export function marksOf(keys) {
  const out = new Map();
  const taken = new Set();
  for (const key of [...new Set(keys)].sort()) {
    let n = hash(key) % signs.length;
    for (let tries = 0; taken.has(n) && tries < signs.length; tries++) n = (n + 1) % signs.length;
    taken.add(n);
    out.set(key, { n, sign: signs[n], fill: `v${n}` });
  }
  return out;
}

function hash(text) {
  let x = 2166136261;
  for (const c of String(text)) x = Math.imul(x ^ c.codePointAt(0), 16777619) >>> 0;
  return x;
}

// What an instance is, apart from its version. `rank`: how soon a human wants to see it.
const states = {
  ok: { word: 'available', sign: '', fill: '', tone: 'good', rank: 6 },
  soon: { word: 'ready, not available yet', sign: '·', fill: 'pending', tone: 'warn', rank: 3 },
  pending: { word: 'pending', sign: '…', fill: 'pending', tone: 'warn', rank: 3 },
  updating: { word: 'updating', sign: '↻', fill: 'pending', tone: 'warn', rank: 3 },
  going: { word: 'terminating', sign: '↓', fill: 'stopped', tone: 'idle', rank: 4 },
  stopped: { word: 'stopped', sign: '–', fill: 'stopped', tone: 'idle', rank: 5 },
  failed: { word: 'failed', sign: '×', fill: 'failed', tone: 'bad', rank: 0 },
  lost: { word: 'unknown', sign: '?', fill: 'lost', tone: 'quiet', rank: 1 },
  done: { word: 'completed', sign: '✓', fill: 'stopped', tone: 'idle', rank: 5 },
};
export const stateNames = Object.keys(states).sort((a, b) => states[a].rank - states[b].rank);
export const stateMark = (name) => states[name] ?? states.lost;

const byStatus = {
  NotCreated: 'pending', Pending: 'pending', Updating: 'updating', Killing: 'going', Killed: 'stopped',
  PodFailed: 'failed', Failed: 'failed', PodSucc: 'done', Succ: 'done', Unknown: 'lost',
};

// stateOf an instance.
export function stateOf(i) {
  if (i.state === 'Running') return i.available ? 'ok' : 'soon';
  return byStatus[i.state] ?? 'lost';
}

// What needs attention, the most urgent first.
export const severities = {
  halted: { sign: '✕', word: 'Halted', tone: 'bad', many: 'halted' },
  stalled: { sign: '!', word: 'Stalled', tone: 'bad', many: 'stalled' },
  lost: { sign: '⊘', word: 'Node lost', tone: 'bad', many: 'on lost nodes' },
  silent: { sign: '?', word: 'Silent', tone: 'quiet', many: 'silent' },
  waiting: { sign: '‖', word: 'Waits for you', tone: 'warn', many: 'waiting for you' },
  degraded: { sign: '▽', word: 'Degraded', tone: 'warn', many: 'degraded' },
  paused: { sign: '‖', word: 'Paused', tone: 'idle', many: 'paused' },
};
export const severityNames = Object.keys(severities);

// States of objects and clusters.
const phases = {
  Ready: ['✓', 'good'], Progressing: ['↻', 'warn'], Waiting: ['‖', 'warn'], Paused: ['‖', 'idle'], Stalled: ['!', 'bad'], Failed: ['✕', 'bad'],
  Unknown: ['?', 'quiet'], Unobserved: ['…', 'idle'], Deleting: ['↓', 'idle'],
  Suspect: ['?', 'warn'], Offline: ['?', 'quiet'], Maintaining: ['–', 'idle'], Unregistered: ['!', 'bad'], Mistaken: ['!', 'bad'], Unfit: ['!', 'bad'],
};

export function phaseMark(phase) {
  const [sign, tone] = phases[phase] ?? ['?', 'idle'];
  return { sign, tone, word: phase || 'Not seen yet' };
}

// Stages of a rollout.
const stages = {
  Done: ['✓', 'good', 'done'], Passed: ['✓', 'good', 'passed'], Skipped: ['–', 'idle', 'skipped'], Running: ['↻', 'warn', 'under way'],
  Progressing: ['↻', 'warn', 'under way'], Staged: ['↻', 'warn', 'under way'], Updating: ['↻', 'warn', 'under way'], Soaking: ['◔', 'warn', 'must stay well for a while'],
  Returning: ['↺', 'warn', 'returns to what is stable'], RollingBack: ['↺', 'bad', 'rolls back'], RolledBack: ['↺', 'bad', 'has rolled back'],
  'Nothing to do': ['–', 'idle', 'nothing to do'], Waiting: ['‖', 'warn', 'waits for a confirmation'], Halted: ['✕', 'bad', 'halted'], Failed: ['✕', 'bad', 'failed'], Pending: ['○', 'idle', 'not begun'],
};

export function stageMark(stage) {
  const [sign, tone, word] = stages[stage] ?? ['○', 'idle', stage || 'not begun'];
  return { sign, tone, word };
}
