/** The agent that works on a task in a form: made of real manifests, so prompt, grammar and checks are those of any agent. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ModelPrice } from '../../../src/domain/manifests/model.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import { buildGrammar } from '../../../src/protocol/grammar/grammar.ts';
import { PACKAGE_ROOT } from '../../project/folders.ts';
import type { Dataset, Task } from './dataset.ts';
import { FORM_PROTOCOLS, grammarParameters } from './forms.ts';
import type { FormName, GrammarOptions } from './forms.ts';
import { BUILTIN_TOOLS, toolManifest } from './tools.ts';

const AGENT = 'fluency';

/** Enough for a model that makes one call at a time. */
const MOST_ITERATIONS = 20;

const PERSONA = `You answer questions about invented data that only your tools know. Never guess a value.
Answer briefly and completely, with the values as the tools give them.`;

export interface RunLimits {
  /** Time limit of a run. */
  readonly seconds: number;
  /** Prices by model, in addition to the known ones. */
  readonly prices: Readonly<Record<string, ModelPrice>>;
}

/** Loads the manifests of all tools once. @throws Error if one of them is invalid */
export class TaskAgents {
  readonly #base: ResolvedAgent;
  readonly #limits: RunLimits;

  constructor({ tools }: Dataset, runLimits: RunLimits) {
    this.#limits = runLimits;
    const names = [...BUILTIN_TOOLS, ...tools.keys()];
    const builtins = BUILTIN_TOOLS.map((name) => `manifests/tools/${name}.yaml`);
    const agent: JsonObject = {
      kind: 'Agent',
      version: '1.0',
      name: AGENT,
      summary: 'A precise assistant.',
      persona: { agent: PERSONA },
      import: { tools: names },
      internal_actions: { enabled: false },
    };
    const made = [agent, ...[...tools].map(([name, spec]) => toolManifest(name, spec))];
    const { catalog, problems } = loadManifests([
      ...builtins.map((path) => ({ path, text: readFileSync(join(PACKAGE_ROOT, path), 'utf8') })),
      ...made.map((manifest) => ({
        path: `fluency/${String(manifest['name'])}.yaml`,
        text: JSON.stringify(manifest),
      })),
    ]);
    const [fault] = problems;
    if (fault !== undefined) throw new Error(`${fault.file}: ${fault.message}`);
    const found = catalog.agent(AGENT);
    if (found === null) throw new Error('the agent of the tasks has no valid manifest');
    this.#base = found;
  }

  /** @param grammar how the generated grammar is sent; only for the form `grammar` */
  agentFor(task: Task, form: FormName, grammar: GrammarOptions | null): ResolvedAgent {
    const { agent, tools } = this.#base;
    const resolved: ResolvedAgent = {
      ...this.#base,
      tools: new Map(task.tools.flatMap((name) => named(name, tools.get(name)))),
      agent: {
        ...agent,
        imports: { ...agent.imports, tools: task.tools },
        protocol: { ...agent.protocol, ...FORM_PROTOCOLS[form] },
        loop: { ...agent.loop, maxParallelActions: task.slots, maxIterations: MOST_ITERATIONS },
        budgets: { ...agent.budgets, seconds: this.#limits.seconds },
        engine: { ...agent.engine, prices: this.#limits.prices },
      },
    };
    if (form !== 'grammar' || grammar === null) return resolved;
    const { text } = buildGrammar(resolved, { format: grammar.format });
    const { engine } = resolved.agent;
    const parameters = { ...engine.parameters, ...grammarParameters(grammar, text) };
    return { ...resolved, agent: { ...resolved.agent, engine: { ...engine, parameters } } };
  }
}

function named<T>(name: string, definition: T | undefined): [string, T][] {
  return definition === undefined ? [] : [[name, definition]];
}
