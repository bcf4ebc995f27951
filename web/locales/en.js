/* English: every word of the page, by key. `{name}` is filled in; plurals have `one` and `other`. */

export const words = {
	"again": "Try again", "back": "Back", "cancel": "Cancel", "close": "Close", "dismiss": "Dismiss",
	"loading": "Loading…", "save": "Save", "delete": "Delete", "copy": "Copy", "copied": "Copied", "more": "More",
	"name": "Name", "skip": "Skip to the content",

	"notFound.title": "There is nothing here",
	"notFound.text": "The address leads nowhere, or what it led to was deleted.", "notFound.home": "To a new chat",

	"broken.title": "This page could not be shown",
	"broken.text": "Something in the page failed. Nothing that you wrote is lost.", "broken.again": "Show it again",

	"unreachable.title": "Amber does not answer",
	"unreachable.text": "Is the network there? What you wrote is kept in this browser.",

	"nav.label": "Chats and pages", "nav.open": "Open the side bar", "nav.close": "Close the side bar",
	"nav.pages": "Pages",

	"account.menu": "Account:", "account.signOut": "Sign out", "account.switch": "Switch organization",
	"account.shortcuts": "Keyboard shortcuts", "account.appearance": "Appearance",

	"theme.title": "Appearance and language", "theme.theme": "Theme", "theme.system": "As the system",
	"theme.light": "Light", "theme.dark": "Dark", "theme.language": "Language",

	"offline": "There is no network. What you write stays here, and answers go on as soon as it is back.",

	"chats.new": "New chat", "chats.search": "Search chats", "chats.searchClear": "Clear the search",
	"chats.label": "Your chats", "chats.none": "Your chats will be listed here.",
	"chats.noneArchived": "No chat is archived.", "chats.nothingFound": "Nothing has these words.",
	"chats.found": { one: "{count} hit", other: "{count} hits" }, "chats.named": "Chats", "chats.said": "Messages",
	"chats.today": "Today", "chats.yesterday": "Yesterday", "chats.week": "The last 7 days",
	"chats.month": "The last 30 days", "chats.older": "Earlier", "chats.pinned": "Pinned",
	"chats.showOlder": "Show earlier chats", "chats.unnamed": "New chat", "chats.actions": "Actions for {name}",
	"chats.rename": "Rename", "chats.renamed": "Renamed.", "chats.pin": "Pin", "chats.unpin": "Unpin",
	"chats.archive": "Archive", "chats.unarchive": "Take out of the archive", "chats.archived": "Archived",
	"chats.showArchived": "Show archived chats", "chats.hideArchived": "Back to all chats", "chats.export": "Export",
	"chats.delete": "Delete", "chats.archivedNow": "The chat is in the archive.",
	"chats.delete.title": "Delete this chat?", "chats.delete.text": "“{name}” and all its messages will be gone for good.",
	"chats.deleted": "The chat was deleted.", "chats.failed": "Your chats could not be loaded.",
	"chats.live": "is being answered",

	"chat.new": "New chat", "chat.title": "Chat", "chat.log": "Conversation",
	"chat.greeting": "What would you like to know?", "chat.greeting.named": "Hello {name}. What would you like to know?",
	"chat.missing.title": "This chat is not here", "chat.missing.text": "It was deleted, or it belongs to somebody else.",
	"chat.failed": "The chat could not be loaded.", "chat.showOlder": "Show earlier messages",
	"chat.toEnd": "To the newest message", "chat.assistant": "Assistant", "chat.choose": "Choose an assistant",
	"chat.noAssistants": "There is no assistant that you may use yet. Make one first, or ask an admin to share one.",

	"composer.label": "Your message", "composer.placeholder": "Ask {name}…", "composer.placeholder.bare": "Ask something…",
	"composer.send": "Send", "composer.stop": "Stop", "composer.attach": "Attach files",
	"composer.hint": "Enter sends, Shift+Enter makes a new line, @ asks another assistant.",
	"composer.asks": "Asks {name}", "composer.asksNot": "Do not ask {name}", "composer.mention": "Assistants to ask",
	"composer.tooLong": "This is too long: at most {most} characters.", "composer.drop": "Drop files to attach them",
	"composer.noOne": "Choose an assistant first.",

	"attach.list": "Attached files", "attach.remove": "Remove {name}", "attach.progress": "{name}: {percent} uploaded",
	"attach.failed": "{name} could not be attached: {why}", "attach.ready": "{name} is attached.",
	"attach.tooLarge": "at most {most}", "attach.wait": "The files are still being uploaded.",
	"attach.retry": "Try to upload {name} again",

	"message.you": "You said", "message.assistant": "{name} said", "message.someAssistant": "The assistant",
	"message.edit": "Edit", "message.edit.label": "Edit your message", "message.edit.send": "Send as a new branch",
	"message.copy": "Copy the text", "message.regenerate": "Answer again", "message.why": "Why this answer",
	"message.branch": "Version {place} of {count}", "message.previous": "Earlier version", "message.next": "Later version",
	"message.system": "Instruction", "message.fileGone": "A file that is not kept any more",

	"answer.thinking": "Thinking…", "answer.complete": "The answer is complete.", "answer.stopped": "Stopped.",
	"answer.stopping": "Stopping…", "answer.lost": "The connection was lost. The answer goes on as soon as it is back…",
	"answer.reasoning": "Thoughts", "answer.reasoning.live": "Thinking…", "answer.sources": "Sources",
	"answer.source": "Source {number}: {name}", "answer.page": "page {page}", "answer.retry": "Try again",

	"tool.running": "{name} is running", "tool.done": "{name}", "tool.arguments": "Arguments", "tool.result": "Result",
	"tool.noResult": "No result.",

	"approval.title": "May this be done?", "approval.text": "The assistant wants to call {name}.",
	"approval.allow": "Allow", "approval.decline": "Decline",
	"approval.announced": "The assistant asks for your permission.",
	"approval.allowed": "Allowed. It goes on once all are decided.",
	"approval.declined": "Declined. It goes on once all are decided.",

	"code.copy": "Copy this code", "code.label": "Code", "code.labelIn": "Code in {language}",

	"table.label": "Table",

	"passage.title": "Source {number}", "passage.document": "In {name}",
	"passage.wholeDocument": "Show the whole document",
	"passage.gone": "The document is not there any more, or you may not read it. This is the passage as it was shown to the assistant.",
	"passage.cut": "Only the part around the passage is shown.",

	"why.title": "Why this answer", "why.intro": "What the assistant was shown for this answer, and what was left out.",
	"why.gone": "Nothing is kept about how this answer came about.", "why.model": "Model", "why.tokens": "Tokens",
	"why.tokensOf": "{used} of {limit} tokens", "why.prompt": "Prompt", "why.scene": "Scene",
	"why.noScene": "None was near enough.", "why.messages": "Messages of this chat",
	"why.messages.text": { one: "the newest message", other: "the {count} newest messages" },
	"why.cut": "Older ones were left out.", "why.blocks": "Recalled from earlier in this chat",
	"why.memories": "What is remembered of you", "why.passages": "Passages of the library", "why.tools": "Tools on offer",
	"why.left": "Left out", "why.none": "None.", "why.notSearched": "The library was not searched.",
	"why.relevance": "relevance {value}", "why.forgotten": "forgotten since",
	"why.untrusted": "Text of strangers in it: {kinds}", "why.fallback": "Instead of the assistant's own model: {why}",
	"why.request": "The request as the model read it", "why.showRequest": "Show the request",
	"why.requestGone": "It cannot be rebuilt: something it was made of was deleted.", "why.part": "Part",
	"why.block": "{from} to {until}", "why.answerTokens": "Answer",

	"shortcuts.title": "Keyboard shortcuts", "shortcuts.help": "This list", "shortcuts.new": "New chat",
	"shortcuts.search": "Search chats", "shortcuts.sidebar": "Open or close the side bar",
	"shortcuts.copy": "Copy the last answer", "shortcuts.stop": "Stop the answer", "shortcuts.newline": "New line",
	"shortcuts.send": "Send", "shortcuts.mention": "Ask another assistant", "shortcuts.inComposer": "In the message box",

	"signIn.title": "Sign in", "signIn.email": "Email", "signIn.password": "Password", "signIn.do": "Sign in",
	"signIn.with": "Continue with {name}", "signIn.or": "or", "signIn.noAccount": "No account yet?",
	"signIn.toSignUp": "Sign up", "signIn.forgot": "Forgot your password?",
	"signIn.forgotNoMail": "Forgot your password? Ask whoever runs this installation: it sends no mail.",
	"signIn.welcome": "Assistants of your own, on a machine of your own.", "signIn.again.title": "Your session has ended",
	"signIn.again.text": "Sign in again and go on where you were: nothing is lost.",

	"signUp.title": "Sign up", "signUp.do": "Create the account",
	"signUp.invited": "You were invited: use the email address that the invitation was sent to.",
	"signUp.closed": "Accounts here are by invitation. If you were given an invitation, paste its link or code below.",
	"signUp.invitation": "Invitation", "signUp.have": "Have an account?", "signUp.passwordHint": "At least 8 characters.",

	"verify.title": "Confirm your email", "verify.sent": "A mail is on its way to {email}. Follow its link to go on.",
	"verify.text": "Is this your address? Then confirm it.", "verify.do": "Confirm",
	"verify.done": "Your address is confirmed. You can sign in now.",
	"verify.bad": "This link is not good any more. Sign in to get another one.",

	"reset.title": "A new password",
	"reset.text": "Enter your email address. If it has an account, you will be sent a link.",
	"reset.send": "Send the link", "reset.sent": "If {email} has an account, a mail is on its way.",
	"reset.new": "New password", "reset.do": "Set the password", "reset.done": "Your password is set. Sign in with it.",
	"reset.noMail": "This installation sends no mail. Ask whoever runs it for a new password.",
	"reset.bad": "This link is not good any more. Ask for another one.",

	"loginError.title": "Signing in did not work",
	"loginError.text": "The identity provider did not let you in, or Amber does not know you: accounts here may be by invitation.",

	"invitation.title": "Invitation", "invitation.text": "You were invited to an organization.",
	"invitation.as": "You are signed in as {email}.", "invitation.accept": "Accept", "invitation.decline": "Decline",
	"invitation.declined": "The invitation was declined.", "invitation.signIn": "Sign in or sign up to answer it.",
	"invitation.enter": "I have an invitation",

	"claim.title": "Take over a guest's chats",
	"claim.text": "You talked to a public assistant as a guest? Paste the guest token, and its chats become yours.",
	"claim.token": "Guest token", "claim.do": "Take over",
	"claim.done": { one: "{count} chat is yours now.", other: "{count} chats are yours now." },

	"feedback.label": "Is this answer good?", "feedback.up": "Good answer", "feedback.down": "Bad answer",
	"feedback.thanks": "Thank you.", "feedback.up.title": "What was good?", "feedback.down.title": "What was wrong?",
	"feedback.reason": "Reason", "feedback.comment": "Comment (optional)", "feedback.send": "Send",
	"feedback.skip": "Skip", "feedback.reason.correct": "Correct", "feedback.reason.clear": "Clear",
	"feedback.reason.complete": "Complete", "feedback.reason.other": "Something else", "feedback.reason.wrong": "Wrong",
	"feedback.reason.incomplete": "Incomplete", "feedback.reason.off_topic": "Beside the point",
	"feedback.reason.sources": "Sources missing or wrong", "feedback.reason.style": "Style",
	"feedback.reason.harmful": "Harmful",

	"notes.label": "Notifications",

	"error.network": "There is no connection. Is the network there?",
	"error.server": "Amber had a problem. Try again in a moment.",
	"error.rateLimited": { one: "Too many requests. Try again in {count} second.", other: "Too many requests. Try again in {count} seconds." },
	"error.signUpClosed": "This address may not sign up here without an open invitation.",
};
