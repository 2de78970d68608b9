/** The order for the bare executor. */

/** What the executor is asked for. */
export interface Plan {
  /** Of the server that is called: host:port. */
  readonly host: string;
  /** A chain is a plan with one slot. */
  readonly calls: readonly Call[];
  readonly slots: number;
  /** A message for the model, which writes the calls instead: each call starts when the model has written its closing tag. */
  readonly prompt: string | null;
}

/** A call and the milliseconds that the server takes for it. */
export interface Call {
  readonly call: string;
  readonly ms: number;
}
