/** White space, format characters such as the zero-width space, and letters that are drawn as nothing. */
const VISIBLE = /[^\s\p{Cf}\u115f\u1160\u3164\uffa0]/u;

/** Whether a reader would see anything of a text. */
export function isVisible(text: string): boolean {
  return VISIBLE.test(text);
}
