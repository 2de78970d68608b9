/**
 * Actions that the runtime adds to a workflow (M6). They are journaled like any other action, because a run continues
 * from the journal, but readers do not see them: they are not steps of the author.
 */

/** The pure built-in that returns its parameters, used to collect groups and outputs. Manifests cannot use its name. */
export const COLLECT = '_collect';
/** The pure built-in that fails, used for a group whose items are not a list. */
export const REFUSE = '_refuse';
/** The id of the action whose output is the workflow's outputs. */
export const OUTPUTS = 'workflow_outputs';

export function isWorkflowHelper(name: string | null | undefined): boolean {
  return name === COLLECT || name === REFUSE;
}

/**
 * Whether readers do not see this event: it is about an action that the runtime added to a workflow. A failure of one
 * is written without the name, and visible. A rejection is visible too: a model may write any name.
 */
export function isHiddenEvent({
  type,
  action_name: name,
}: {
  readonly type: string;
  readonly action_name?: string;
}): boolean {
  return name !== undefined && isWorkflowHelper(name) && type.startsWith('action_') && type !== 'action_rejected';
}
