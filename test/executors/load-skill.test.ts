/** `load_skill` at its ports: text, files, and what it refuses (C8). */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { SkillDefinition } from '../../src/domain/manifests/skill.ts';
import type { ActionWorkspace } from '../../src/domain/ports/session-stores.ts';
import { pathIssue } from '../../src/domain/workspace.ts';
import { internalExecutor, internalPolicy } from '../../src/executors/internal.ts';
import { callOf, contextOf, errorOf } from './support.ts';
import type { TestContext } from './support.ts';

const skillOf = (name: string, files: SkillDefinition['files'] = []): SkillDefinition => ({
  kind: 'Skill',
  name,
  version: '1',
  summary: 'Does a thing.',
  description: 'Does a thing.',
  tags: [],
  metadata: { 'allowed-tools': 'Bash' },
  text: `How to ${name}.`,
  files,
});
const FILES = [
  { path: 'references/a.md', text: 'Ä' },
  { path: 'run.py', text: '#!/usr/bin/env python3\n' },
];

type Written = Parameters<ActionWorkspace['write']>[0];

interface Kit {
  readonly context: TestContext;
  readonly events: [string, number][];
  readonly written: Written[];
}

function kit(skills: readonly SkillDefinition[], fault: Error | null = null): Kit {
  const events: Kit['events'] = [];
  const written: Written[] = [];
  const unused = (): never => {
    throw new Error('unexpected use of the workspace');
  };
  const workspace: ActionWorkspace = {
    use: unused,
    commit: unused,
    write: async (files) => {
      if (fault !== null) throw fault;
      written.push(files);
      return await Promise.resolve([]);
    },
  };
  const known = new Map(skills.map((skill) => [skill.name, skill]));
  const loaded = (name: string, files: number): void => void events.push([name, files]);
  return { context: contextOf({ skills: { known, loaded }, workspace }), events, written };
}

const load = (parameters: JsonObject, context: TestContext): ReturnType<typeof internalExecutor.execute> =>
  internalExecutor.execute(callOf(parameters, { action: { type: 'internal', name: 'load_skill' } }), context);

describe('[C8] load_skill', () => {
  test('gives the text, writes the files, and is journaled; again gives the same', async () => {
    const { context, events, written } = kit([skillOf('forms', FILES)]);
    const files = ['skills/forms/references/a.md', 'skills/forms/run.py'];
    for (const turn of [1, 2]) {
      expect(await load({ name: 'forms' }, context)).toEqual({
        ok: true,
        output: { name: 'forms', text: 'How to forms.', files },
      });
      expect(events).toHaveLength(turn);
    }
    expect(events[0]).toEqual(['forms', 2]);
    expect(written[1]).toEqual(written[0]);
    expect(written[0]).toEqual([
      { path: files[0], bytes: new TextEncoder().encode('Ä'), executable: false },
      { path: files[1], bytes: new TextEncoder().encode('#!/usr/bin/env python3\n'), executable: true },
    ]);
    for (const { path } of written[0] ?? []) expect(pathIssue(path)).toBeNull();
  });

  test('without files writes nothing; without a workspace gives the text only', async () => {
    const { context, written } = kit([skillOf('talk')]);
    expect(await load({ name: 'talk' }, context)).toMatchObject({ ok: true, output: { files: [] } });
    expect(written).toEqual([]);
    const { context: other, events } = kit([skillOf('forms', FILES)]);
    expect(await load({ name: 'forms' }, { ...other, workspace: null })).toMatchObject({
      ok: true,
      output: { text: 'How to forms.', files: [] },
    });
    expect(events).toEqual([['forms', 0]]);
  });

  test('of an unknown name fails with the nearest one', async () => {
    const { context, events } = kit([skillOf('pdf-forms'), skillOf('talk')]);
    expect(errorOf(await load({ name: 'pdf_form' }, context))).toEqual({
      code: 'unknown_name',
      message: 'No skill is called "pdf_form" (did you mean "pdf-forms"?)',
      retryable: false,
      beforeDispatch: true,
    });
    expect(errorOf(await load({ name: '../../talk/SKILL.md' }, context)).code).toBe('unknown_name');
    expect(errorOf(await load({ name: 'zzzzzzzz' }, context)).message).toContain('(known: pdf-forms, talk)');
    expect(errorOf(await load({ name: '__proto__' }, context)).code).toBe('unknown_name');
    expect(errorOf(await load({}, context)).code).toBe('invalid_parameters');
    expect(errorOf(await load({ name: 5 }, context)).code).toBe('invalid_parameters');
    expect(events).toEqual([]);
  });

  test('into a full workspace fails, and is not journaled', async () => {
    const { context, events } = kit([skillOf('forms', FILES)], new EngineError('workspace_full', 'It is full'));
    expect(errorOf(await load({ name: 'forms' }, context))).toMatchObject({
      code: 'workspace_full',
      message: 'It is full',
    });
    expect(events).toEqual([]);
  });

  test('that was cancelled while it wrote its files is not journaled', async () => {
    const { context, events, written } = kit([skillOf('forms', FILES)]);
    const running = load({ name: 'forms' }, context);
    context.abort.abort(new DOMException('cancelled', 'AbortError'));
    expect(errorOf(await running)).toMatchObject({ code: 'aborted' });
    expect(written).toHaveLength(1);
    expect(events).toEqual([]);
  });

  test('is allowed by the import of a skill alone; only blocked_actions forbids it', () => {
    const open = { enabled: true, allowed: null, blocked: [] };
    const allowed = (policy: Parameters<typeof internalPolicy>[0], has = true): string | undefined =>
      internalPolicy(policy, 'load_skill', { skills: has })?.message;
    expect(allowed(open)).toBeUndefined();
    expect(allowed({ ...open, enabled: false })).toBeUndefined();
    expect(allowed({ ...open, allowed: ['set_variable'] })).toBeUndefined();
    expect(allowed({ ...open, blocked: ['load_skill'] })).toContain('is blocked for this agent');
    expect(allowed({ ...open, allowed: ['load_skill'] }, false)).toContain('this agent has no skills');
    expect(internalPolicy({ ...open, enabled: false }, 'set_variable', { skills: true })?.message).toBe(
      'The internal action "set_variable" is not allowed: internal actions are disabled for this agent (allowed: load_skill)',
    );
    expect(internalPolicy(open, 'load')?.message).not.toContain('load_skill');
  });

  test('without skills is refused before anything happens', async () => {
    expect(errorOf(await load({ name: 'x' }, contextOf()))).toMatchObject({ code: 'not_allowed' });
  });
});
