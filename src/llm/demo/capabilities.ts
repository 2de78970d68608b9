/** Creates the demo provider's steps, within the agent's tools and capabilities (X4). */
import type { JsonObject } from '../../domain/json.ts';
import type { ModelRequest } from '../../domain/ports/model.ts';

export type Agent = NonNullable<ModelRequest['agent']>;

/** One action of the demo. */
export interface Step {
  readonly id: string;
  /** Output key of its result. */
  readonly key: string;
  /** Human-readable description. */
  readonly label: string;
  readonly type: 'python' | 'shell' | 'tool' | 'internal' | 'agent' | 'workflow' | 'relic';
  readonly name: string | null;
  readonly parameters: JsonObject;
  /** How an answer shows the result: `$key`, or selected parts of it. */
  readonly shown: string;
}

/** A step without its id and unique key. */
export type StepDraft = Omit<Step, 'id' | 'shown'> & { readonly shown?: (key: string) => string };

/** The agent's abilities that steps need. */
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
