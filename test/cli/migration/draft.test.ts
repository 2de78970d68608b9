import { describe, expect, test } from 'vitest';
import { Draft } from '../../../cli/migration/draft.ts';

describe('[M1] a draft of a manifest', () => {
  const written = { cap: 3, engine: { params: { a: [1, { b: 2 }] } }, steps: [{ id: 'x', tool: 't' }] };

  test('unchanged parts keep their paths', () => {
    const draft = new Draft(written);
    expect(draft.original(['engine', 'params', 'a', 1, 'b'])).toEqual(['engine', 'params', 'a', 1, 'b']);
    expect(draft.original(['nowhere', 0])).toEqual(['nowhere', 0]);
  });

  test('moved scalars and maps keep the place where the author wrote them', () => {
    const draft = new Draft(written);
    draft.move(['cap'], ['loop', 'max_iterations']);
    draft.move(['engine', 'params'], ['engine', 'primary', 'parameters']);
    draft.move(['steps', 0, 'id'], ['steps', 0, 'name']);
    expect(draft.value).toEqual({
      loop: { max_iterations: 3 },
      engine: { primary: { parameters: { a: [1, { b: 2 }] } } },
      steps: [{ name: 'x', tool: 't' }],
    });
    expect(draft.original(['loop', 'max_iterations'])).toEqual(['cap']);
    expect(draft.original(['engine', 'primary', 'parameters', 'a', 1, 'b'])).toEqual(['engine', 'params', 'a', 1, 'b']);
    expect(draft.original(['steps', 0, 'name'])).toEqual(['steps', 0, 'id']);
    expect(draft.original(['steps', 0, 'tool'])).toEqual(['steps', 0, 'tool']);
  });

  test('a new value has the place that it was made from, also in its parts', () => {
    const draft = new Draft(written);
    draft.set(['target'], { name: ['t'] }, ['steps', 0, 'tool']);
    expect(draft.original(['target'])).toEqual(['steps', 0, 'tool']);
    expect(draft.original(['target', 'name', 0])).toEqual(['steps', 0, 'tool']);
  });

  test('a part of the draft inside a new value keeps its own place', () => {
    const draft = new Draft(written);
    const first = draft.get(['steps', 0]) ?? null;
    draft.set(['steps'], [{ type: 'parallel', steps: [first] }]);
    expect(draft.original(['steps', 0, 'steps', 0, 'tool'])).toEqual(['steps', 0, 'tool']);
    expect(draft.original(['steps', 0, 'type'])).toEqual(['steps']);
  });

  test("the author's value is unchanged, and notes have the author's paths", () => {
    const draft = new Draft(written);
    draft.move(['cap'], ['loop', 'cap']);
    draft.note(['loop', 'cap'], 'understood');
    draft.remove(['engine']);
    expect(written.engine.params.a[0]).toBe(1);
    expect(draft.notes).toEqual([{ path: ['cap'], part: 'key', message: 'understood', needsAct: false }]);
    expect(draft.has(['engine'])).toBe(false);
  });

  test('a value that is no map or list keeps no members', () => {
    const draft = new Draft({ loop: 'fast', list: [1], cap: 3 });
    draft.set(['loop', 'cap'], 1);
    draft.set(['list', 'cap'], 1);
    draft.move(['cap'], ['loop', 'cap']);
    expect(draft.value).toEqual({ loop: 'fast', list: [1] });
  });

  test('keys such as __proto__ are plain keys', () => {
    const draft = new Draft(JSON.parse('{"__proto__": {"a": 1}}') as never);
    draft.set(['map', '__proto__'], { b: 1 });
    expect(Object.keys(draft.get(['map']) as object)).toEqual(['__proto__']);
    expect(draft.get(['__proto__', 'a'])).toBe(1);
  });
});
