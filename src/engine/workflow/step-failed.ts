type StepErrorCode = 'step_failed' | 'too_many_actions' | 'too_large';

/** A step that the workflow needs has failed, or cannot run. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
  readonly code: StepErrorCode;

  constructor(message: string, code: StepErrorCode = 'step_failed') {
    super(message);
    this.code = code;
  }
}
