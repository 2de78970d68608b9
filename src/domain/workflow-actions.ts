/**
 * Actions that the runtime adds to a workflow (M6). They are journaled and streamed like any other action, because
 * streams have no gaps (J4), but those that collect or refuse have no name there. Documents and plans leave these out: they
 * are not steps of the author.
 */

/** The pure built-in that returns its parameters, used to collect groups and outputs. Manifests cannot use its name. */
export const COLLECT = '_collect';
/** The pure built-in that fails, used for a group whose items are not a list. */
export const REFUSE = '_refuse';
/** The pure built-in that returns its parameter `value`: the steps `value` and `return`, and results of groups. */
export const VALUE = '_value';
/** The pure built-in of the step `ask`: always needs an approval. */
export const ASK = '_ask';
/** The id of the action whose output is the workflow's outputs. */
export const OUTPUTS = 'workflow_outputs';

/** Whether the runtime has added the action to a workflow: it has no effect, so no policy decides about it (C9). */
export function isWorkflowAction(name: string): boolean {
  return OWN.has(name);
}

const OWN: ReadonlySet<string> = new Set([COLLECT, REFUSE, VALUE, ASK]);

/** Whether an action with this name has no name in the journal. */
export function isWorkflowHelper(name: string): boolean {
  return name === COLLECT || name === REFUSE;
}
