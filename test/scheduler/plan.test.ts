import { describe, expect, test } from 'vitest';
import { buildPlan, planOf, planStatically } from '../../src/scheduler/plan.ts';
import { renderPlan } from '../../src/scheduler/render-plan.ts';
import type { PlanEntry, PlannedAction } from '../../src/scheduler/plan.ts';
import type { ActionDeclaration, ActionRejection } from '../../src/domain/action.ts';
import { Driver, declaration, policy } from '../support/scheduler-kit.ts';
import { researchAssistant } from './research-assistant.ts';

function entries(...actions: (Partial<ActionDeclaration> & { readonly id: string })[]): PlanEntry[] {
  return actions.map((fields, ordinal) => ({ action: declaration({ ordinal, ...fields }), policy: policy() }));
}

const rejection: ActionRejection = {
  ordinal: 0,
  id: 'broken',
  type: null,
  mode: null,
  name: null,
  code: 'invalid_json',
  message: 'not JSON',
  line: 1,
  column: 1,
  excerpt: '',
};

describe('the research assistant', () => {
  const { report } = planStatically(researchAssistant);

  test('[S13] ten actions, by type and by mode', () => {
    expect(report.actions).toHaveLength(10);
    expect(report.byType).toEqual({ tool: 7, agent: 1, llm: 1, relic: 1 });
    expect(report.byMode).toEqual({ async: 7, sync: 2, fire_and_forget: 1 });
  });

  test('[S13] five waves of three, two, one, three and one', () => {
    expect(report.waves).toEqual([
      ['fetch_wiki', 'fetch_arxiv', 'fetch_news'],
      ['extract_facts', 'summarize'],
      ['synthesize'],
      ['cache_report', 'quality', 'citations'],
      ['finalize'],
    ]);
  });

  test('[S13] 330 s in sequence, 240 s by waves and on the critical path', () => {
    expect(report.estimates).toEqual({
      sequential_ms: 330_000,
      waves_ms: 240_000,
      critical_path_ms: 240_000,
      speedup: 1.38,
    });
    expect(report.criticalPath).toEqual(['fetch_arxiv', 'summarize', 'synthesize', 'quality', 'finalize']);
  });

  test('[S13] the barrier comes after the synthesis and holds actions without a depends_on field', () => {
    expect(report.barriers).toEqual([{ id: 'synthesize', wave: 2, holds: ['cache_report', 'quality'] }]);
  });

  test('[S13] the text has totals, counts, estimates, waves with icons, a chart and a graph', () => {
    const text = renderPlan(report, { agent: 'research_assistant', maxParallel: 4 });
    for (const line of [
      'Agent: research_assistant',
      'Total Actions: 10',
      'Max Parallel: 4',
      '  • tool: 7',
      '  • fire_and_forget: 1',
      '  • Sequential execution: ~330s',
      '  • Wave by wave: ~240s',
      '  • Speedup: 1.4x',
      '  • Execution waves: 5',
      '🌊 Wave 1 (can run in parallel):',
      '  🔧 🔄 fetch_wiki · wikipedia [30s]',
      '  🤖 🔄 summarize · summarizer [60s]',
      '  🧠 ⏸️  synthesize [120s]',
      '  🏺 🔥 cache_report · report_cache.put [10s]',
      '└─ extract_facts',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(text).toMatch(/^fetch_arxiv {3}█+$/m);
  });

  test('[S13] no chart line is wider than requested', () => {
    for (const width of [40, 55, 70, 120]) {
      const chart = renderPlan(report, { width })
        .split('\n')
        .filter((line) => /^\w+ +[█▒]+$/.test(line));
      expect(chart).toHaveLength(10);
      expect(Math.max(...chart.map((line) => line.length))).toBeLessThanOrEqual(width);
    }
  });
});

describe('any declarations', () => {
  const planned = (id: string, fields: Partial<PlannedAction> = {}): PlannedAction => ({
    id,
    type: 'tool',
    mode: 'async',
    name: 'echo',
    dependsOn: [],
    estimateMs: 1_000,
    ...fields,
  });

  test('[H6] a rejected action appears only in the rejected list, and its dependents stay', () => {
    const plan = planStatically([
      { rejection },
      ...entries({ id: 'a', ordinal: 1, dependsOn: ['broken'] }, { id: 'b', ordinal: 2, dependsOn: ['nowhere'] }),
      ...entries({ id: 'c', ordinal: 3, references: ['b'] }),
    ]);
    expect(plan.rejected.map(({ id, code }) => [id, code])).toEqual([
      ['broken', 'invalid_json'],
      ['b', 'unknown_dependency'],
    ]);
    expect(plan.report.actions.map(({ id, dependsOn }) => [id, dependsOn])).toEqual([
      ['a', ['broken']],
      ['c', ['b']],
    ]);
    expect(plan.report.waves).toEqual([['a', 'c']]);
  });

  test('[H6] depends_on contains the implicit dependencies, and waves show the barriers', () => {
    const { report } = planStatically(
      entries(
        { id: 's', mode: 'sync', dependsOn: ['late'] },
        { id: 'late' },
        { id: 'held', references: ['late'] },
        { id: 'free', dependsOn: [] },
      ),
    );
    expect(report.actions.map(({ id, dependsOn }) => [id, dependsOn])).toEqual([
      ['s', ['late']],
      ['late', []],
      ['held', ['late']],
      ['free', []],
    ]);
    expect(report.waves).toEqual([['late', 'free'], ['s'], ['held']]);
  });

  test('[S4] an awaited fire_and_forget action is planned as async, with the warning', () => {
    const plan = planStatically(entries({ id: 'a', mode: 'fire_and_forget' }, { id: 'b', references: ['a'] }));
    expect(plan.report.byMode).toEqual({ async: 2 });
    expect(plan.warnings.map(({ code }) => code)).toEqual(['fire_and_forget_awaited']);
  });

  test('[S13] an empty plan has no waves and a speedup of one', () => {
    const { report } = planStatically([]);
    expect(report.waves).toEqual([]);
    expect(report.estimates).toEqual({ sequential_ms: 0, waves_ms: 0, critical_path_ms: 0, speedup: 1 });
    expect(renderPlan(report)).toContain('Total Actions: 0');
  });

  test('[S13] the plan of a run that has already started is the plan of its text', () => {
    const run = new Driver();
    for (const entry of researchAssistant) {
      if ('action' in entry) run.declare(entry.action, entry.policy);
      if (run.state.generation?.nodes.length === 4) run.succeed('fetch_wiki');
    }
    run.end();
    expect(planOf(run.state, 1)).toEqual(planStatically(researchAssistant).report);
  });

  test('[S13] dependencies on earlier iterations delay nothing and are listed separately', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'a' });
    run.end();
    const report = planOf(run.state, 2);
    expect(report.waves).toEqual([['b', 'a']]);
    expect(report.actions[0]?.earlier).toEqual(['a']);
  });

  test('[S13] a cycle is cut: first at its barriers, then at dependencies on later actions', () => {
    const barrier = buildPlan([planned('a', { dependsOn: ['b'] }), planned('b', { heldBy: ['a'] })]);
    expect(barrier.waves).toEqual([['b'], ['a']]);
    const later = buildPlan([planned('a', { dependsOn: ['b'] }), planned('b', { dependsOn: ['a'] }), planned('c')]);
    expect(later.waves).toEqual([['a', 'c'], ['b']]);
    expect(later.edges).toEqual([{ from: 'a', to: 'b' }]);
  });

  test('[S3][S13] a plan shows a cycle that passes through a skipped action without it', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: ['d', 'b'] });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'c', dependsOn: ['b', 'a'] });
    run.declare({ id: 'd', dependsOn: ['c'] });
    run.end();
    const report = planOf(run.state, 1);
    expect(report.waves).toEqual([['a'], ['c'], ['d']]);
    expect(report.edges).toEqual([
      { from: 'a', to: 'c' },
      { from: 'c', to: 'd' },
    ]);
  });

  test('[S13] dependencies outside the plan delay nothing: unknown ids, the action’s own id, a rejected action with the same id', () => {
    const report = buildPlan([
      planned('a'),
      planned('b', { dependsOn: ['b', 'nowhere', 'a', 'a'], dependsOnRejected: ['a'] }),
      planned('c', { dependsOn: ['a', 'a'] }),
    ]);
    expect(report.edges).toEqual([{ from: 'a', to: 'c' }]);
    expect(report.waves).toEqual([['a', 'b'], ['c']]);
  });

  test('[S13] an action starts at the latest end of its dependencies and barriers, and the path goes through that one', () => {
    const report = buildPlan([
      planned('s', { mode: 'sync', estimateMs: 500 }),
      planned('a', { estimateMs: 3_000 }),
      planned('b', { dependsOn: ['a'], heldBy: ['s'], estimateMs: 100 }),
      planned('c', { dependsOn: ['b', 's'], estimateMs: 50 }),
      planned('d', { heldBy: ['s'], estimateMs: 10 }),
      planned('e', { heldBy: ['s'], dependsOn: ['d'], estimateMs: 0 }),
    ]);
    expect(report.startsMs).toEqual([0, 0, 3_000, 3_100, 500, 510]);
    expect(report.waves).toEqual([
      ['s', 'a'],
      ['b', 'd'],
      ['c', 'e'],
    ]);
    expect(report.barriers).toEqual([{ id: 's', wave: 0, holds: ['b', 'd', 'e'] }]);
    expect(report.criticalPath).toEqual(['a', 'b', 'c']);
    expect(report.estimates).toEqual({
      sequential_ms: 3_660,
      waves_ms: 3_150,
      critical_path_ms: 3_150,
      speedup: 1.16,
    });
  });

  test('[S13] in a cycle with barriers, only barriers of the cycle are cut', () => {
    const report = buildPlan([
      planned('s', { mode: 'sync' }),
      planned('a', { mode: 'sync', dependsOn: ['b'] }),
      planned('b', { heldBy: ['s', 'a'] }),
      planned('c', { heldBy: ['s'] }),
    ]);
    expect(report.waves).toEqual([['s'], ['b', 'c'], ['a']]);
    expect(report.barriers).toEqual([{ id: 's', wave: 0, holds: ['b', 'c'] }]);
  });

  test('[S13] the drawing of a chain of 2,000 actions has a limited size', () => {
    const chain = Array.from({ length: 2_000 }, (_, n) => ({ id: `a${n}`, dependsOn: n === 0 ? [] : [`a${n - 1}`] }));
    const { report } = planStatically(entries(...chain));
    expect(report.waves).toHaveLength(2_000);
    expect(renderPlan(report).length).toBeLessThan(1_000_000);
  });
});
