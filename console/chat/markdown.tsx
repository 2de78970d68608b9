/** Markdown, as it is until the code that formats it is loaded. */
import { useEffect } from 'preact/hooks';
import { later } from '../parts/later.ts';
import { memo } from '../parts/memo.ts';
import type { MarkdownProps } from './markdown-text.tsx';
import { PlainText } from './plain-text.tsx';

export const markdownText = later(async () => await import('./markdown-text.tsx'));

export const Markdown = memo(function Markdown(props: MarkdownProps) {
  useEffect(markdownText.load, []);
  const code = markdownText.code.value;
  return code === null ? <PlainText text={props.text} /> : <code.MarkdownText {...props} />;
});
