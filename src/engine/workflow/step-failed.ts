type StepFault = 'step_failed' | 'too_many_actions' | 'too_large';

/** A step that the workflow could not go on without has failed, or cannot be run at all. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
  readonly code: StepFault;

  constructor(message: string, code: StepFault = 'step_failed') {
    super(message);
    this.code = code;
  }
}
