/** Servers of the Model Context Protocol whose tools an agent uses (E5), after validation. */
export interface McpServerDefinition {
  /** Unique in the agent. */
  readonly name: string;
  readonly url: string;
  /** The secret that is sent as a bearer token, `TOOL_…`; null: none. */
  readonly auth: string | null;
  /** The server's names of the tools that the agent may use; null: all. */
  readonly tools: readonly string[] | null;
  /** What the names of its tools begin with; null: nothing, unless a name is taken. */
  readonly prefix: string | null;
  /** Whether the server's statements about the effects of its tools count. */
  readonly trust: boolean;
  readonly approval: 'never' | 'always';
  /** Of one call; null: the default of tools. */
  readonly timeoutMs: number | null;
}
