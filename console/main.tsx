/** The console: a page that shows agents think, plan and work. It uses the client and nothing else of the system. */
import { render } from 'preact';
import { takeToken } from './app/access.ts';
import { App } from './app/app.tsx';
import { startRouter } from './app/router.ts';
import './styles/base.css';
import './styles/session.css';
import './styles/chat.css';
import './styles/run.css';
import './styles/pages.css';

startRouter(takeToken);
render(<App />, document.body);
