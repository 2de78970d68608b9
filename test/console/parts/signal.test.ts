/** Components that follow values. */
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { expect, test } from 'vitest';
import { signal } from '../../../console/parts/signal.ts';
import { rendered, shown } from '../chat/fake-dom.ts';

/** A component that shows what `read` gives, and counts how often it was rendered. */
function counted(read: () => string) {
  const count = { renderings: 0 };
  const Counted = () => {
    count.renderings += 1;
    return h('p', null, read());
  };
  return { count, Counted };
}

test('[U1] a component that has read a value shows its changes; several at once are one rendering', async () => {
  const one = signal('a');
  const other = signal('b');
  const { count, Counted } = counted(() => one.value + other.value);
  const page = shown(h(Counted, null));
  one.value = 'c';
  other.value = 'd';
  await rendered();
  expect(page.text).toBe('cd');
  expect(count.renderings).toBe(2);
});

test('[U1] the same value again is no change, and a value that was only peeked at is not followed', async () => {
  const read = signal('a');
  const peeked = signal('b');
  const { count, Counted } = counted(() => read.value + peeked.peek());
  shown(h(Counted, null));
  read.value = 'a';
  peeked.value = 'c';
  await rendered();
  expect(count.renderings).toBe(1);
});

test('[U1] only the component that reads is rendered: not those around it and in it', async () => {
  const value = signal('a');
  const inner = counted(() => 'inner');
  const element = h(inner.Counted, null);
  const Middle = () => h('div', null, value.value, element);
  const outer = counted(() => 'outer');
  const page = shown(h('main', null, h(outer.Counted, null), h(Middle, null)));
  value.value = 'b';
  await rendered();
  expect(page.text).toBe('outerbinner');
  expect([outer.count.renderings, inner.count.renderings]).toEqual([1, 1]);
});

test('[U1] what a component no longer reads, or read outside of a rendering, does not render it', async () => {
  const isOn = signal(true);
  const value = signal('a');
  const { count, Counted } = counted(() => (isOn.value ? value.value : 'off'));
  const page = shown(h(Counted, null));
  isOn.value = false;
  await rendered();
  expect(page.text).toBe('off');
  value.value = 'b';
  expect(value.value).toBe('b');
  value.value = 'c';
  await rendered();
  expect(count.renderings).toBe(2);
});

test('[U1] a component that has gone follows nothing', async () => {
  const value = signal('a');
  const { count, Counted } = counted(() => value.value);
  const page = shown(h(Counted, null));
  shown(null, page);
  value.value = 'b';
  await rendered();
  expect(count.renderings).toBe(1);
});

test('[U1] a change shows although a state of the component was set to what it was', async () => {
  const value = signal('a');
  let set: (to: number) => void = () => undefined;
  const Both = () => {
    const [, setState] = useState(0);
    set = setState;
    return h('p', null, value.value);
  };
  const page = shown(h(Both, null));
  set(1);
  set(0);
  value.value = 'b';
  await rendered();
  expect(page.text).toBe('b');
});
