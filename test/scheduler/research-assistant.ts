/** The research assistant with ten actions as declarations; the timeouts are the estimates. */
import type { ActionDeclaration } from '../../src/domain/action.ts';
import type { PlanEntry } from '../../src/scheduler/plan.ts';
import { declaration, policy } from '../support/scheduler-kit.ts';

type Row = Pick<ActionDeclaration, 'id' | 'type' | 'mode' | 'name'> & {
  readonly seconds: number;
  readonly outputKey?: string;
  readonly dependsOn?: readonly string[];
  readonly references?: readonly string[];
};

const ROWS: readonly Row[] = [
  { id: 'fetch_wiki', type: 'tool', mode: 'async', name: 'wikipedia', seconds: 30, outputKey: 'wiki' },
  { id: 'fetch_arxiv', type: 'tool', mode: 'async', name: 'arxiv', seconds: 30, outputKey: 'papers' },
  { id: 'fetch_news', type: 'tool', mode: 'async', name: 'news', seconds: 20, outputKey: 'news' },
  {
    id: 'extract_facts',
    type: 'tool',
    mode: 'async',
    name: 'extract_facts',
    seconds: 15,
    dependsOn: ['fetch_wiki'],
    references: ['wiki'],
    outputKey: 'facts',
  },
  {
    id: 'summarize',
    type: 'agent',
    mode: 'async',
    name: 'summarizer',
    seconds: 60,
    dependsOn: ['fetch_arxiv'],
    references: ['papers'],
    outputKey: 'summary',
  },
  {
    id: 'synthesize',
    type: 'llm',
    mode: 'sync',
    name: 'llm',
    seconds: 120,
    dependsOn: ['extract_facts', 'summarize', 'fetch_news'],
    references: ['facts', 'summary', 'news'],
    outputKey: 'report',
  },
  {
    id: 'cache_report',
    type: 'relic',
    mode: 'fire_and_forget',
    name: 'report_cache.put',
    seconds: 10,
    references: ['report'],
  },
  { id: 'quality', type: 'tool', mode: 'async', name: 'quality_check', seconds: 20, references: ['report'] },
  {
    id: 'citations',
    type: 'tool',
    mode: 'async',
    name: 'citations',
    seconds: 15,
    dependsOn: ['synthesize'],
    references: ['papers'],
  },
  {
    id: 'finalize',
    type: 'tool',
    mode: 'sync',
    name: 'finalize',
    seconds: 10,
    dependsOn: ['quality', 'citations'],
    outputKey: 'final_report',
  },
];

export const researchAssistant: readonly PlanEntry[] = ROWS.map(({ seconds, ...fields }, ordinal) => ({
  action: declaration({ ordinal, timeoutMs: seconds * 1000, ...fields }),
  policy: policy({ estimateMs: seconds * 1000, timeoutMs: seconds * 1000 }),
}));
