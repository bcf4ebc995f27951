/* 简体中文。 */

/** @type {import("../app/i18n.js").Catalogue} */
export const words = {
	"again": "重试", "back": "返回", "cancel": "取消", "close": "关闭", "dismiss": "关闭提示", "loading": "正在加载…",
	"save": "保存", "delete": "删除", "copy": "复制", "copied": "已复制", "more": "更多", "name": "名称", "skip": "跳到内容",

	"notFound.title": "这里什么也没有", "notFound.text": "这个地址不存在，或者它指向的内容已被删除。", "notFound.home": "开始新对话",

	"broken.title": "页面无法显示", "broken.text": "页面出了问题。您写的内容没有丢失。", "broken.again": "重新显示",

	"unreachable.title": "Amber 没有回应", "unreachable.text": "网络是否正常？您写的内容保存在此浏览器中。",

	"nav.label": "对话与页面", "nav.open": "打开侧栏", "nav.close": "关闭侧栏", "nav.pages": "页面",

	"account.menu": "账户：", "account.signOut": "退出登录", "account.switch": "切换组织", "account.shortcuts": "键盘快捷键",
	"account.appearance": "外观",

	"theme.title": "外观与语言", "theme.theme": "主题", "theme.system": "跟随系统", "theme.light": "浅色", "theme.dark": "深色",
	"theme.language": "语言",

	"offline": "没有网络。您写的内容保留在这里，网络恢复后回答会继续。",

	"chats.new": "新对话", "chats.search": "搜索对话", "chats.searchClear": "清除搜索", "chats.label": "您的对话",
	"chats.none": "您的对话将列在这里。", "chats.noneArchived": "没有已归档的对话。", "chats.nothingFound": "没有包含这些词的内容。",
	"chats.found": { other: "{count} 条结果" }, "chats.named": "对话", "chats.said": "消息", "chats.today": "今天",
	"chats.yesterday": "昨天", "chats.week": "过去 7 天", "chats.month": "过去 30 天", "chats.older": "更早",
	"chats.pinned": "已置顶", "chats.showOlder": "显示更早的对话", "chats.unnamed": "新对话", "chats.actions": "“{name}”的操作",
	"chats.rename": "重命名", "chats.renamed": "已重命名。", "chats.pin": "置顶", "chats.unpin": "取消置顶", "chats.archive": "归档",
	"chats.unarchive": "移出归档", "chats.archived": "已归档", "chats.showArchived": "显示已归档的对话", "chats.hideArchived": "返回所有对话",
	"chats.export": "导出", "chats.delete": "删除", "chats.archivedNow": "对话已归档。", "chats.delete.title": "删除此对话？",
	"chats.delete.text": "“{name}”及其所有消息将被永久删除。", "chats.deleted": "对话已删除。", "chats.failed": "无法加载您的对话。",
	"chats.live": "正在回答",

	"chat.new": "新对话", "chat.title": "对话", "chat.log": "对话内容", "chat.greeting": "您想了解什么？", "chat.greeting.named": "{name}，您好。您想了解什么？",
	"chat.missing.title": "此对话不在这里", "chat.missing.text": "它已被删除，或属于其他人。", "chat.failed": "无法加载此对话。",
	"chat.showOlder": "显示更早的消息", "chat.toEnd": "到最新消息", "chat.assistant": "助手", "chat.choose": "选择助手",
	"chat.noAssistants": "还没有您可以使用的助手。请先创建一个，或请管理员共享一个。",

	"composer.label": "您的消息", "composer.placeholder": "向{name}提问…", "composer.placeholder.bare": "请提问…",
	"composer.send": "发送", "composer.stop": "停止", "composer.attach": "添加文件", "composer.hint": "Enter 发送，Shift+Enter 换行，@ 询问其他助手。",
	"composer.asks": "询问{name}", "composer.asksNot": "不询问{name}", "composer.mention": "可询问的助手", "composer.tooLong": "内容过长：最多 {most} 个字符。",
	"composer.drop": "拖放文件到此处", "composer.noOne": "请先选择助手。",

	"attach.list": "已添加的文件", "attach.remove": "移除 {name}", "attach.progress": "{name}：已上传 {percent}",
	"attach.failed": "无法添加 {name}：{why}", "attach.ready": "已添加 {name}。", "attach.tooLarge": "最大 {most}",
	"attach.wait": "文件仍在上传。", "attach.retry": "重新上传 {name}",

	"message.you": "您说", "message.assistant": "{name} 说", "message.someAssistant": "助手", "message.edit": "编辑",
	"message.edit.label": "编辑您的消息", "message.edit.send": "作为新分支发送", "message.copy": "复制文本", "message.regenerate": "重新回答",
	"message.why": "为何这样回答", "message.branch": "第 {place} 个版本，共 {count} 个", "message.previous": "上一个版本",
	"message.next": "下一个版本", "message.system": "指令", "message.fileGone": "文件已不再保留",

	"answer.thinking": "正在思考…", "answer.complete": "回答已完成。", "answer.stopped": "已停止。", "answer.stopping": "正在停止…",
	"answer.lost": "连接已断开。恢复后回答会继续…", "answer.reasoning": "思考过程", "answer.reasoning.live": "正在思考…",
	"answer.sources": "来源", "answer.source": "来源 {number}：{name}", "answer.page": "第 {page} 页", "answer.retry": "重试",

	"tool.running": "{name} 正在运行", "tool.done": "{name}", "tool.arguments": "参数", "tool.result": "结果",
	"tool.noResult": "没有结果。",

	"approval.title": "允许这样做吗？", "approval.text": "助手想要调用 {name}。", "approval.allow": "允许", "approval.decline": "拒绝",
	"approval.announced": "助手请求您的许可。", "approval.allowed": "已允许。全部决定后继续。", "approval.declined": "已拒绝。全部决定后继续。",

	"code.copy": "复制此代码", "code.label": "代码", "code.labelIn": "{language} 代码",

	"table.label": "表格",

	"passage.title": "来源 {number}", "passage.document": "出自 {name}", "passage.wholeDocument": "显示整个文档",
	"passage.gone": "文档已不存在，或您无权阅读。这是当时提供给助手的段落。", "passage.cut": "仅显示段落前后的部分。",

	"why.title": "为何这样回答", "why.intro": "为此回答提供给助手的内容，以及未提供的内容。", "why.gone": "没有保留关于此回答的记录。", "why.model": "模型",
	"why.tokens": "词元", "why.tokensOf": "{used} / {limit} 个词元", "why.prompt": "提示词", "why.scene": "场景",
	"why.noScene": "没有足够接近的场景。", "why.messages": "此对话的消息", "why.messages.text": { other: "最新的 {count} 条消息" },
	"why.cut": "更早的消息未提供。", "why.blocks": "从此对话早先内容中回忆的部分", "why.memories": "关于您的记忆", "why.passages": "资料库中的段落",
	"why.tools": "可用工具", "why.left": "未提供的内容", "why.none": "无。", "why.notSearched": "未搜索资料库。", "why.relevance": "相关度 {value}",
	"why.forgotten": "此后已忘记", "why.untrusted": "其中包含外部文本：{kinds}", "why.fallback": "未使用助手自己的模型：{why}",
	"why.request": "模型读到的请求", "why.showRequest": "显示请求", "why.requestGone": "无法重建：其组成部分已被删除。", "why.part": "部分",
	"why.block": "{from} 至 {until}", "why.answerTokens": "回答",

	"shortcuts.title": "键盘快捷键", "shortcuts.help": "此列表", "shortcuts.new": "新对话", "shortcuts.search": "搜索对话",
	"shortcuts.sidebar": "打开或关闭侧栏", "shortcuts.copy": "复制最后的回答", "shortcuts.stop": "停止回答", "shortcuts.newline": "换行",
	"shortcuts.send": "发送", "shortcuts.mention": "询问其他助手", "shortcuts.inComposer": "在消息框中",

	"signIn.title": "登录", "signIn.email": "电子邮箱", "signIn.password": "密码", "signIn.do": "登录", "signIn.with": "使用 {name} 继续",
	"signIn.or": "或", "signIn.noAccount": "还没有账户？", "signIn.toSignUp": "注册", "signIn.forgot": "忘记密码？",
	"signIn.forgotNoMail": "忘记密码？请联系系统管理员：此系统不发送邮件。", "signIn.welcome": "您自己的助手，在您自己的机器上。", "signIn.again.title": "会话已结束",
	"signIn.again.text": "重新登录即可继续：没有任何内容丢失。",

	"signUp.title": "注册", "signUp.do": "创建账户", "signUp.invited": "您已受邀：请使用收到邀请的电子邮箱。", "signUp.closed": "此处的账户需要邀请。如果您收到了邀请，请在下面粘贴链接或代码。",
	"signUp.invitation": "邀请", "signUp.have": "已有账户？", "signUp.passwordHint": "至少 8 个字符。",

	"verify.title": "确认电子邮箱", "verify.sent": "邮件正发往 {email}。请点击其中的链接继续。", "verify.text": "这是您的邮箱吗？请确认。",
	"verify.do": "确认", "verify.done": "邮箱已确认。您现在可以登录。", "verify.bad": "此链接已失效。请登录以获取新链接。",

	"reset.title": "新密码", "reset.text": "请输入电子邮箱。如果它有账户，您将收到一个链接。", "reset.send": "发送链接", "reset.sent": "如果 {email} 有账户，邮件正在途中。",
	"reset.new": "新密码", "reset.do": "设置密码", "reset.done": "密码已设置。请用它登录。", "reset.noMail": "此系统不发送邮件。请向系统管理员索取新密码。",
	"reset.bad": "此链接已失效。请重新申请。",

	"loginError.title": "登录未成功", "loginError.text": "身份提供方未允许您登录，或者 Amber 不认识您：此处的账户可能需要邀请。",

	"invitation.title": "邀请", "invitation.text": "您被邀请加入一个组织。", "invitation.as": "您以 {email} 登录。",
	"invitation.accept": "接受", "invitation.decline": "拒绝", "invitation.declined": "已拒绝邀请。", "invitation.signIn": "请登录或注册以回应。",
	"invitation.enter": "我有邀请",

	"claim.title": "接管访客对话", "claim.text": "您曾以访客身份与公开助手对话？粘贴访客令牌，这些对话就归您所有。", "claim.token": "访客令牌",
	"claim.do": "接管", "claim.done": { other: "{count} 个对话现在归您所有。" },

	"feedback.label": "这个回答好吗？", "feedback.up": "好的回答", "feedback.down": "不好的回答", "feedback.thanks": "谢谢。",
	"feedback.up.title": "哪里好？", "feedback.down.title": "哪里不好？", "feedback.reason": "原因", "feedback.comment": "评论（可选）",
	"feedback.send": "发送", "feedback.skip": "跳过", "feedback.reason.correct": "正确", "feedback.reason.clear": "清楚",
	"feedback.reason.complete": "完整", "feedback.reason.other": "其他", "feedback.reason.wrong": "错误",
	"feedback.reason.incomplete": "不完整", "feedback.reason.off_topic": "答非所问", "feedback.reason.sources": "来源缺失或错误",
	"feedback.reason.style": "风格", "feedback.reason.harmful": "有害",

	"notes.label": "通知",

	"error.network": "无法连接。网络是否正常？", "error.server": "Amber 出了问题。请稍后重试。", "error.rateLimited": { other: "请求过多。请在 {count} 秒后重试。" },
	"error.signUpClosed": "此邮箱没有有效邀请，不能在此注册。",
};
