/** The plan report in a terminal (S13), character by character. */
import { describe, expect, test } from 'vitest';
import type { ActionDeclaration } from '../../src/domain/action.ts';
import { buildPlan, planStatically } from '../../src/scheduler/plan.ts';
import type { PlanReport, PlannedAction } from '../../src/scheduler/plan.ts';
import { renderPlan } from '../../src/scheduler/render-plan.ts';
import type { RenderOptions } from '../../src/scheduler/render-plan.ts';
import { declaration, policy } from '../support/scheduler-kit.ts';
import { researchAssistant } from './research-assistant.ts';

type Fields = Partial<ActionDeclaration> & { readonly id: string };

function planOf(actions: readonly Fields[], estimateMs: (ordinal: number) => number = () => 1_000): PlanReport {
  return planStatically(
    actions.map((fields, ordinal) => ({
      action: declaration({ ordinal, ...fields }),
      policy: policy({ estimateMs: estimateMs(ordinal) }),
    })),
  ).report;
}

function chain(length: number): Fields[] {
  return Array.from({ length }, (_, n) => ({ id: `a${n}`, dependsOn: n === 0 ? [] : [`a${n - 1}`] }));
}

const planned = (id: string, fields: Partial<PlannedAction> = {}): PlannedAction => ({
  id,
  type: 'tool',
  mode: 'async',
  name: id,
  dependsOn: [],
  estimateMs: 1_000,
  ...fields,
});

/** The lines of a section, without the rule below its heading. */
function section(report: PlanReport, heading: string, options?: RenderOptions): string[] {
  const found = renderPlan(report, options)
    .split('\n\n')
    .find((text) => text.startsWith(heading));
  return (found ?? '').split('\n').slice(2);
}

describe('the research assistant', () => {
  test('[S13] totals, counts, estimates, waves, chart and graph', () => {
    const { report } = planStatically(researchAssistant);
    expect(`${renderPlan(report, { agent: 'research_assistant', maxParallel: 4 })}\n`).toBe(`📋 Execution Plan
----------------------------------------------------------------------
Agent: research_assistant
Total Actions: 10
Max Parallel: 4

Actions by Type:
  • tool: 7
  • agent: 1
  • llm: 1
  • relic: 1

Actions by Mode:
  • async: 7
  • sync: 2
  • fire_and_forget: 1

Execution Estimates:
  • Sequential execution: ~330s
  • Wave by wave: ~240s
  • Critical path: ~240s (fetch_arxiv -> summarize -> synthesize -> quality -> finalize)
  • Speedup: 1.4x
  • Execution waves: 5

🌊 Waves
----------------------------------------------------------------------
🌊 Wave 1 (can run in parallel):
  🔧 🔄 fetch_wiki · wikipedia [30s]
  🔧 🔄 fetch_arxiv · arxiv [30s]
  🔧 🔄 fetch_news · news [20s]

🌊 Wave 2 (can run in parallel):
  🔧 🔄 extract_facts [15s]
  🤖 🔄 summarize · summarizer [60s]

🌊 Wave 3:
  🧠 ⏸️  synthesize [120s]
  ═══ barrier: after synthesize ═══ blocks cache_report, quality

🌊 Wave 4 (can run in parallel):
  🏺 🔥 cache_report · report_cache.put [10s]
  🔧 🔄 quality · quality_check [20s]
  🔧 🔄 citations [15s]

🌊 Wave 5:
  🔧 ⏸️  finalize [10s]

📊 Timeline (unlimited slots)
----------------------------------------------------------------------
              0s                                                  240s
fetch_wiki    ▒▒▒▒▒▒▒
fetch_arxiv   ███████
fetch_news    ▒▒▒▒▒
extract_facts        ▒▒▒▒
summarize            ██████████████
synthesize                         ████████████████████████████
cache_report                                                   ▒▒
quality                                                        █████
citations                                                      ▒▒▒▒
finalize                                                           ███
              █ critical path  ▒ other

🔗 Dependency Graph
----------------------------------------------------------------------
fetch_wiki
└─ extract_facts
   └─ synthesize
      ├─ cache_report
      ├─ quality
      │  └─ finalize
      └─ citations
         └─ finalize
fetch_arxiv
├─ summarize
│  └─ synthesize (above)
└─ citations (above)
fetch_news
└─ synthesize (above)
`);
  });
});

describe('counts and estimates', () => {
  test('[S13] more frequent types are first; without an agent and a limit, neither is shown', () => {
    const report = planOf([{ id: 'a' }, { id: 'b', type: 'llm' }, { id: 'c', type: 'llm' }]);
    expect(renderPlan(report)).toContain('-\nTotal Actions: 3\n\nActions by Type:\n  • llm: 2\n  • tool: 1\n\n');
  });

  test('[S13] an empty plan has no counts, waves, chart or graph', () => {
    expect(renderPlan(planOf([]), { width: 40 })).toBe(
      [
        '📋 Execution Plan',
        '-'.repeat(40),
        'Total Actions: 0',
        '',
        'Execution Estimates:',
        '  • Sequential execution: ~0ms',
        '  • Wave by wave: ~0ms',
        '  • Critical path: ~0ms',
        '  • Speedup: 1.0x',
        '  • Execution waves: 0',
      ].join('\n'),
    );
  });

  const paths: readonly (readonly [length: number, path: string])[] = [
    [1, ''],
    [2, ' (a0 -> a1)'],
    [8, ' (a0 -> a1 -> a2 -> a3 -> a4 -> a5 -> a6 -> a7)'],
    [9, ' (a0 -> a1 -> a2 -> a3 -> a4 -> a5 -> … -> a8)'],
  ];
  test.each(paths)('[S13] the critical path of %i actions', (length, path) => {
    expect(renderPlan(planOf(chain(length)))).toContain(`  • Critical path: ~${length}s${path}\n`);
  });

  const durations: readonly (readonly [ms: number, text: string])[] = [
    [0, '0ms'],
    [340.4, '340ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_549, '1.5s'],
    [30_000, '30s'],
  ];
  test.each(durations)('[S13] %d ms are shown as %s', (ms, text) => {
    expect(renderPlan(buildPlan([planned('a', { estimateMs: ms })]))).toContain(`a [${text}]`);
  });
});

describe('waves', () => {
  test('[S13] an action has icons for its type and mode, and its target’s name if it differs from the id', () => {
    const report = buildPlan([
      planned('a', { name: 'search' }),
      planned('b', { mode: 'sync' }),
      planned('c', { type: 'llm', name: 'llm', mode: 'fire_and_forget' }),
    ]);
    expect(section(report, '🌊')).toEqual([
      '🌊 Wave 1 (can run in parallel):',
      '  🔧 🔄 a · search [1s]',
      '  🔧 ⏸️  b [1s]',
      '  🧠 🔥 c [1s]',
    ]);
  });

  const held: readonly (readonly [number, string])[] = [
    [1, 'h0'],
    [6, 'h0, h1, h2, h3, h4, h5'],
    [7, 'h0, h1, h2, h3, h4, h5 and 1 more'],
  ];
  test.each(held)('[S13] a barrier lists the actions that it holds: %i', (count, names) => {
    const report = buildPlan([
      planned('s', { mode: 'sync' }),
      ...Array.from({ length: count }, (_, n) => planned(`h${n}`, { heldBy: ['s'] })),
    ]);
    expect(section(report, '🌊').slice(0, 3)).toEqual([
      '🌊 Wave 1:',
      '  🔧 ⏸️  s [1s]',
      `  ═══ barrier: after s ═══ blocks ${names}`,
    ]);
    expect(renderPlan(report).match(/barrier/g)).toHaveLength(1);
  });
});

describe('the chart', () => {
  test('[S13] bars extend from start to end; bars of the critical path are full, and long ids are cut', () => {
    const report = buildPlan([
      planned('b', { estimateMs: 3_000, dependsOn: ['a'] }),
      planned('a', { estimateMs: 1_000 }),
      planned('other', { estimateMs: 2_000 }),
      planned('none', { estimateMs: 0, dependsOn: ['b'] }),
    ]);
    expect(section(report, '📊', { width: 46 })).toEqual([
      '      0s                                    4s',
      'a     ██████████',
      'other ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒',
      'b               ██████████████████████████████',
      'none                                         ▒',
      '      █ critical path  ▒ other',
    ]);
    const long = buildPlan([planned('x'.repeat(20)), planned('y'.repeat(21))]);
    expect(section(long, '📊').map((line) => line.split(' ')[0])).toEqual([
      '',
      'x'.repeat(20),
      `${'y'.repeat(19)}…`,
      '',
    ]);
  });

  test('[S13] it has the requested width, but at least 40 columns', () => {
    const widthOf = (options: RenderOptions): number =>
      Math.max(...section(buildPlan([planned('a')]), '📊', options).map((line) => line.length));
    expect([{ width: 10 }, { width: 40 }, { width: 41 }, {}].map(widthOf)).toEqual([40, 40, 41, 70]);
    expect(renderPlan(buildPlan([]), { width: 41 }).split('\n')[1]).toBe('-'.repeat(41));
  });

  test('[S13] a plan with a duration of zero has a chart', () => {
    expect(section(buildPlan([planned('a', { estimateMs: 0 })]), '📊', { width: 40 })).toEqual([
      '  0s                                 1ms',
      'a █',
      '  █ critical path  ▒ other',
    ]);
  });
});

describe('the graph', () => {
  test('[S13] an action is expanded below its first dependency, and only named below the others', () => {
    const report = buildPlan([
      planned('a'),
      planned('b', { dependsOn: ['a'] }),
      planned('c', { dependsOn: ['a', 'b'] }),
      planned('d', { dependsOn: ['c'] }),
    ]);
    expect(section(report, '🔗')).toEqual(['a', '├─ b', '│  └─ c', '│     └─ d', '└─ c (above)']);
  });

  test('[S13] a section shows 400 lines and the number of the remaining lines', () => {
    expect(section(planOf(chain(400)), '🔗')).toHaveLength(400);
    const longer = section(planOf(chain(402)), '🔗');
    expect(longer).toHaveLength(401);
    expect(longer.at(-1)).toBe('… and 2 more');
    expect(section(planOf(chain(402)), '📊').at(-2)).toBe('… and 2 more');
  });
});
