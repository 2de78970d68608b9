/** Expiries of approvals and client calls: one timer for all, and none while they are suspended (J8, C3). */
import { describe, expect, test } from 'vitest';
import { Deadlines } from '../../../src/domain/deadlines.ts';
import { Expiries } from '../../../src/engine/actions/expiries.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

function kitOf(): { readonly clock: VirtualClock; readonly expiries: Expiries; readonly fired: string[] } {
  const clock = new VirtualClock();
  const fired: string[] = [];
  return { clock, fired, expiries: new Expiries(clock, new Deadlines(clock), (timer) => fired.push(timer)) };
}

describe('[C3] expiries', () => {
  test('fire in order of their times, each once', () => {
    const { clock, expiries, fired } = kitOf();
    expiries.set('client:c', 30);
    expiries.set('client:a', 10);
    expiries.set('approval:b', 10);
    clock.advance(10);
    expect(fired).toEqual(['client:a', 'approval:b']);
    expect([expiries.at('client:a'), expiries.next]).toEqual([null, clock.now() + 20]);
    clock.advance(100);
    expect(fired).toEqual(['client:a', 'approval:b', 'client:c']);
    expect(clock.next).toBeNull();
  });

  test('do not fire after they are cleared or set again', () => {
    const { clock, expiries, fired } = kitOf();
    expiries.set('client:a', 10);
    expiries.set('client:b', 20);
    expiries.clear('client:a');
    expiries.set('client:b', 50);
    clock.advance(49);
    expect(fired).toEqual([]);
    clock.advance(1);
    expect(fired).toEqual(['client:b']);
  });

  test('use no timer while they are suspended; what is overdue fires at the restart', () => {
    const { clock, expiries, fired } = kitOf();
    expiries.set('client:a', 10);
    expiries.suspend();
    expiries.set('client:b', 20);
    expect(clock.next).toBeNull();
    clock.advance(15);
    expect(fired).toEqual([]);
    expiries.restart();
    clock.advance(0);
    expect(fired).toEqual(['client:a']);
    clock.advance(5);
    expect(fired).toEqual(['client:a', 'client:b']);
  });

  test('thousands are cleared, suspended and restarted without growing, in a moment', () => {
    const { clock, expiries } = kitOf();
    for (let at = 0; at < 2_000; at += 1) expiries.set(`client:${at}`, 1_000_000 + at);
    for (let at = 0; at < 1_999; at += 1) {
      expiries.restart();
      expiries.clear(`client:${at}`);
      expiries.suspend();
    }
    expect([expiries.next, clock.next]).toEqual([clock.now() + 1_001_999, null]);
    expiries.cancelAll();
    expect(expiries.next).toBeNull();
  });
});
