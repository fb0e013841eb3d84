// The instances of a TApp as squares by id. One canvas as large as what can be seen is
// drawn while the list scrolls, so that 50,000 cost what 500 cost; of a change only the
// squares that differ are drawn. For a keyboard and a screen reader it is a list box with
// one option: the active instance, whose frame is an element.
import { h, setText } from './dom.js';


const sizes = [[48, 44, 4], [400, 26, 3], [2500, 16, 2], [Infinity, 12, 2]]; // instances up to, side, gap

export class Grid {
  // hooks: cell(instance) returns {fill, sign, name}, label(instance) a sentence;
  // point(instance|null), pick(ids) are told of.
  constructor(hooks) {
    this.hooks = hooks;
    this.list = [];
    this.place = new Map(); // id -> index
    this.picked = new Set();
    this.dirty = new Set();
    this.active = 0;
    this.sprites = new Map();
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.option = h('div', { class: 'cell', role: 'option', id: 'cell', 'aria-selected': 'false' });
    this.space = h('div', { class: 'space', role: 'presentation' }, this.option);
    this.element = h('div', { class: 'grid', role: 'listbox', tabindex: '0', 'aria-multiselectable': 'true', 'aria-label': 'Instances', 'aria-activedescendant': 'cell' }, this.canvas, this.space);
    this.element.addEventListener('scroll', () => this.redraw(), { passive: true });
    this.element.addEventListener('mousemove', (e) => this.hover(e));
    this.element.addEventListener('mouseleave', () => hooks.point(null));
    this.element.addEventListener('click', (e) => this.click(e));
    this.element.addEventListener('keydown', (e) => this.key(e));
    this.element.addEventListener('focus', () => this.move(this.active));
    this.element.addEventListener('blur', () => hooks.point(null));
    this.resize = new ResizeObserver(() => this.layout());
    this.resize.observe(this.element);
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.onDark = () => { this.sprites.clear(); this.redraw(); };
    this.dark.addEventListener('change', this.onDark);
    this.frames = []; // how long each drawing took, for tests
  }

  close() {
    this.resize.disconnect();
    this.dark.removeEventListener('change', this.onDark);
    cancelAnimationFrame(this.frame);
  }

  // set all instances, in the order of their ids.
  set(list) {
    const size = this.list.length;
    this.list = list;
    this.place = new Map(list.map((i, n) => [i.id, n]));
    for (const id of this.picked) if (!this.place.has(id)) this.picked.delete(id);
    this.active = Math.min(this.active, Math.max(0, list.length - 1));
    if (size !== list.length) this.layout(); else this.redraw();
    this.describe();
  }

  // change the instances of these ids, which are in the list.
  change(ids) {
    for (const id of ids) this.dirty.add(this.place.get(id));
    if (ids.includes(this.list[this.active]?.id)) this.describe();
    this.later();
  }

  redraw() { this.all = true; this.later(); }

  later() { this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.draw(); }); }

  layout() {
    const width = this.element.clientWidth;
    if (!width) return;
    const [, side, gap] = sizes.find(([most]) => this.list.length <= most);
    const small = width < 500 && side > 26 ? 36 : side;
    Object.assign(this, { side: small, pitch: small + gap, gutter: this.list.length > 48 ? 44 : 0 });
    const fit = Math.max(1, Math.floor((width - this.gutter) / this.pitch));
    this.columns = fit >= 10 ? fit - fit % 10 : fit >= 5 ? 5 : fit;
    this.rows = Math.ceil(this.list.length / this.columns);
    const most = Math.max(240, Math.round(innerHeight * 0.62));
    const height = Math.min(most, this.rows * this.pitch + 2);
    this.element.style.height = `${height + 2}px`;
    this.space.style.height = `${this.rows * this.pitch}px`;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const w = Math.round(width * ratio), hgt = Math.round(height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== hgt || this.ratio !== ratio) {
      Object.assign(this.canvas, { width: w, height: hgt });
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.ratio = ratio;
    }
    this.sprites.clear();
    this.frameOption();
    this.redraw();
  }

  draw() {
    if (!this.columns) return;
    const began = performance.now();
    const c = this.canvas.getContext('2d');
    const top = this.element.scrollTop, bottom = top + this.canvas.height / this.ratio;
    const first = Math.floor(top / this.pitch) * this.columns, last = Math.min(this.list.length, Math.ceil(bottom / this.pitch) * this.columns);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (this.all) {
      c.clearRect(0, 0, this.canvas.width, this.canvas.height);
      if (this.gutter) this.numbers(c, top, first, last);
      for (let n = first; n < last; n++) this.square(c, n, top);
    } else {
      for (const n of this.dirty) if (n >= first && n < last) this.square(c, n, top);
    }
    this.all = false;
    this.dirty.clear();
    if (this.list.length) this.drawn ??= performance.now(); // since the beginning of the page
    if (this.frames.push(performance.now() - began) > 600) this.frames.shift();
  }

  numbers(c, top, first, last) {
    const style = getComputedStyle(this.element);
    c.fillStyle = style.getPropertyValue('--soft');
    c.font = `11px ${style.fontFamily}`;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    const every = this.pitch < 16 ? 2 : 1;
    for (let n = first; n < last; n += this.columns) {
      const row = n / this.columns;
      if (row % every === 0) c.fillText(this.list[n].id, this.gutter - 8, row * this.pitch - top + this.side / 2 + 1);
    }
  }

  square(c, n, top) {
    const i = this.list[n];
    const x = this.gutter + (n % this.columns) * this.pitch, y = Math.floor(n / this.columns) * this.pitch - top;
    c.clearRect(x, y, this.pitch, this.pitch);
    const { fill, sign, name } = this.hooks.cell(i);
    const dim = this.only && !this.only.has(name);
    c.globalAlpha = dim ? 0.18 : 1;
    c.drawImage(this.sprite(fill, sign, this.picked.has(i.id)), x, y, this.pitch, this.pitch);
    if (this.side >= 26) {
      c.fillStyle = this.signColour;
      c.font = this.side > 30 ? `600 ${this.side > 40 ? 13 : 12}px ${this.family}` : `9.5px ${this.family}`;
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillText(i.id, x + this.side / 2, y + this.side * (sign ? 0.66 : 0.52));
    }
    c.globalAlpha = 1;
  }

  // sprite is a square, drawn once for each look.
  sprite(fill, sign, picked) {
    const key = `${fill} ${sign} ${picked}`;
    let s = this.sprites.get(key);
    if (s) return s;
    const style = getComputedStyle(this.element);
    this.signColour = style.getPropertyValue('--sign');
    this.family = style.fontFamily;
    s = document.createElement('canvas');
    s.width = s.height = Math.round(this.pitch * this.ratio);
    const c = s.getContext('2d');
    c.scale(s.width / this.pitch, s.height / this.pitch);
    c.fillStyle = style.getPropertyValue(`--${fill}`);
    c.beginPath();
    c.roundRect(0, 0, this.side, this.side, Math.max(2, this.side / 9));
    c.fill();
    if (picked) {
      c.strokeStyle = style.getPropertyValue('--ink');
      c.lineWidth = 2;
      c.beginPath();
      c.roundRect(1, 1, this.side - 2, this.side - 2, Math.max(2, this.side / 9));
      c.stroke();
    }
    c.fillStyle = this.signColour;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    const large = this.side >= 26;
    // States stand out from versions, which most squares show.
    const small = this.side * (fill.startsWith('v') ? 0.52 : 0.74);
    c.font = `${large ? 600 : 700} ${large ? this.side * 0.3 : small}px ${this.family}`;
    c.fillText(sign, this.side / 2, large ? this.side * 0.3 : this.side / 2 + 0.5);
    this.sprites.set(key, s);
    return s;
  }

  at(e) {
    const box = this.element.getBoundingClientRect();
    const x = e.clientX - box.left - this.gutter, y = e.clientY - box.top + this.element.scrollTop;
    const column = Math.floor(x / this.pitch), n = Math.floor(y / this.pitch) * this.columns + column;
    return x >= 0 && column < this.columns && n < this.list.length ? n : -1;
  }

  hover(e) {
    const n = this.at(e);
    this.hooks.point(n < 0 ? null : this.list[n]);
  }

  click(e) {
    const n = this.at(e);
    if (n < 0) return;
    this.pick(n, e.shiftKey, e.ctrlKey || e.metaKey);
    this.move(n);
  }

  // pick one instance, the range to it (extend), or one more (more).
  pick(n, extend, more) {
    const before = new Set(this.picked);
    const id = this.list[n].id;
    const alone = before.size === 1 && before.has(id);
    if (!more && !extend) this.picked.clear();
    if (extend) for (let k = Math.min(this.anchor ?? n, n); k <= Math.max(this.anchor ?? n, n); k++) this.picked.add(this.list[k].id);
    else if (more && before.has(id)) this.picked.delete(id);
    else if (!alone) this.picked.add(id);
    if (!extend) this.anchor = n;
    for (const k of [...before, ...this.picked]) this.dirty.add(this.place.get(k));
    this.later();
    this.describe();
    this.hooks.pick([...this.picked]);
  }

  key(e) {
    const page = this.columns * Math.max(1, Math.floor(this.element.clientHeight / this.pitch) - 1);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: page, PageUp: -page };
    const last = this.list.length - 1;
    if (last < 0 || e.altKey) return;
    if (e.key === ' ' || e.key === 'Enter') this.pick(this.active, false, e.key === ' ');
    else if (e.key === 'Escape') { this.picked.clear(); this.redraw(); this.hooks.pick([]); }
    else if (e.key === 'Home' || e.key === 'End') this.move(e.key === 'Home' ? 0 : last);
    else if (e.key in steps) {
      const to = this.active + steps[e.key];
      if (to < 0 || to > last) { e.preventDefault(); return; }
      if (e.shiftKey) { this.anchor ??= this.active; this.pick(to, true); }
      this.move(to);
    } else return;
    e.preventDefault();
  }

  move(n) {
    if (!this.list.length) return;
    this.active = n;
    const y = Math.floor(n / this.columns) * this.pitch;
    const view = this.element;
    if (y < view.scrollTop) view.scrollTop = y;
    else if (y + this.pitch > view.scrollTop + view.clientHeight) view.scrollTop = y + this.pitch - view.clientHeight;
    this.frameOption();
    this.describe();
    this.hooks.point(this.list[n]);
  }

  frameOption() {
    if (!this.columns) return;
    const s = this.option.style;
    s.width = s.height = `${this.side}px`;
    s.transform = `translate(${this.gutter + (this.active % this.columns) * this.pitch}px, ${Math.floor(this.active / this.columns) * this.pitch}px)`;
  }

  describe() {
    const i = this.list[this.active];
    if (!i) return;
    setText(this.option, this.hooks.label(i));
    this.option.setAttribute('aria-selected', String(this.picked.has(i.id)));
    this.option.setAttribute('aria-posinset', String(this.active + 1));
    this.option.setAttribute('aria-setsize', String(this.list.length));
  }

  // filter dims all but the cells of these names; null: none.
  filter(names) {
    this.only = names;
    this.redraw();
  }
}

