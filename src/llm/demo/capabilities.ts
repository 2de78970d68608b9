/** What the demo provider can make an agent do: steps, as far as its tools and capabilities allow (X4). */
import type { JsonObject } from '../../domain/json.ts';
import type { ModelRequest } from '../../domain/ports.ts';

export type Agent = NonNullable<ModelRequest['agent']>;

/** One thing to do. */
export interface Step {
  readonly id: string;
  /** The name under which its result is shown. */
  readonly key: string;
  /** What it is, for people. */
  readonly label: string;
  readonly type: 'python' | 'shell' | 'tool' | 'internal' | 'agent' | 'workflow' | 'relic';
  readonly name: string | null;
  readonly parameters: JsonObject;
  /** How the result is shown in an answer, `$key` unless parts of it read better. */
  readonly shown: string;
}

/** A step before it has got its id and its unique key. */
export type StepDraft = Omit<Step, 'id' | 'shown'> & { readonly shown?: (key: string) => string };

/** What an agent can do, as far as steps need it. */
export class Capabilities {
  readonly lacking = new Set<string>();
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  get agent(): Agent {
    return this.#agent;
  }

  get python(): boolean {
    return this.#agent.capabilities.includes('python');
  }

  has(tool: string): boolean {
    return this.#agent.tools.some(({ name }) => name === tool);
  }

  runPython(key: string, label: string, code: string): StepDraft | 'lacking' {
    if (!this.python) return this.#lack('Python');
    return { key, label, type: 'python', name: null, parameters: { code } };
  }

  runShell(key: string, label: string, command: string): StepDraft | 'lacking' {
    if (!this.#agent.capabilities.includes('shell')) return this.#lack('a shell');
    return { key, label, type: 'shell', name: null, parameters: { command } };
  }

  call(
    tool: string,
    key: string,
    label: string,
    parameters: JsonObject,
    shown?: (key: string) => string,
  ): StepDraft | 'lacking' {
    if (!this.has(tool)) return this.#lack(`the tool ${tool}`);
    return { key, label, type: 'tool', name: tool, parameters, ...(shown === undefined ? {} : { shown }) };
  }

  #lack(what: string): 'lacking' {
    this.lacking.add(what);
    return 'lacking';
  }
}
