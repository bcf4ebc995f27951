/* 简体中文。 */

/** @type {import("../app/i18n.js").Catalogue} */
export const words = {
	"again": "重试", "back": "返回", "cancel": "取消", "close": "关闭", "dismiss": "关闭提示", "loading": "正在加载…",
	"save": "保存", "delete": "删除", "copy": "复制", "copied": "已复制", "more": "更多", "name": "名称", "skip": "跳到内容",

	"notFound.title": "这里什么也没有", "notFound.text": "这个地址不存在，或者它指向的内容已被删除。", "notFound.home": "开始新对话",

	"broken.title": "页面无法显示", "broken.text": "页面出了问题。您写的内容没有丢失。", "broken.again": "重新显示",

	"unreachable.title": "{platform} 没有回应", "unreachable.text": "网络是否正常？您写的内容保存在此浏览器中。",

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

	"chat.new": "新对话", "chat.title": "对话", "chat.log": "对话内容", "chat.suggested": "推荐问题", "chat.greeting": "您想了解什么？", "chat.greeting.named": "{name}，您好。您想了解什么？",
	"chat.missing.title": "此对话不在这里", "chat.missing.text": "它已被删除，或属于其他人。", "chat.failed": "无法加载此对话。",
	"chat.showOlder": "显示更早的消息", "chat.toEnd": "到最新消息", "chat.assistant": "助手", "chat.choose": "选择助手", "chat.filter": "筛选助手",
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

	"answer.thinking": "正在思考…", "answer.complete": "回答已完成。", "answer.stopped": "已停止。", "answer.wasStopped": "此回答已被停止。", "answer.stopping": "正在停止…",
	"answer.lost": "连接已断开。恢复后回答会继续…",
	"answer.queued": "正在排队：您的组织还有 {count} 个问题排在前面。", "answer.queued.next": "正在排队：下一个就是您的问题。",
	"answer.queued.limit": "正在排队：您的组织同时进行的回答已达上限，前面还有 {count} 个问题。",
	"answer.queued.limit.next": "正在排队：您的组织同时进行的回答已达上限，下一个就是您的问题。",
	"answer.reasoning": "思考过程", "answer.reasoning.live": "正在思考…",
	"answer.sources": "来源", "answer.source": "来源 {number}：{name}", "answer.page": "第 {page} 页", "answer.retry": "重试",

	"tool.running": "{name} 正在运行", "tool.done": "{name}", "tool.arguments": "参数", "tool.result": "结果",
	"tool.noResult": "没有结果。",

	"approval.title": "允许这样做吗？", "approval.text": "助手想要调用 {name}。", "approval.allow": "允许", "approval.decline": "拒绝",
	"approval.announced": "助手请求您的许可。", "approval.allowed": "已允许。全部决定后继续。", "approval.declined": "已拒绝。全部决定后继续。",

	"code.copy": "复制此代码", "code.label": "代码", "code.labelIn": "{language} 代码",

	"table.label": "表格", "task.done": "已完成：", "task.open": "待办：",

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
	"why.part.system": "提示词", "why.part.tools": "工具", "why.part.blocks": "从此对话早先内容中回忆的部分", "why.part.memories": "关于您的记忆",
	"why.part.passages": "资料库中的段落", "why.part.messages": "此对话的消息", "why.kind.tool_results": "工具结果",
	"why.kind.files": "文件", "why.kind.passages": "资料库段落", "why.kind.memories": "记忆", "why.kind.earlier_talk": "此对话的早先内容",
	"why.role.system": "指令", "why.role.user": "您", "why.role.assistant": "助手", "why.role.tool": "工具结果",
	"why.left.recall_full": { other: "此对话的 {count} 个早先部分：可回忆内容的篇幅已用完。" }, "why.left.unrelated": "更早的消息：与问题关联太少。",
	"why.left.too_many": "超出可提供给模型的数量的工具：{names}", "why.left.unreadable": "无法读取的文件：{reason}",
	"why.left.shortened": { other: "{count} 个长文件的大部分内容：只使用了开头和与问题相关的部分。" },
	"why.left.no_room": { other: "{count} 条消息：超出模型的上下文窗口。" }, "why.left.older": "更早的消息：始终只发送最新的消息，其余的在相关时才会回忆。",

	"shortcuts.title": "键盘快捷键", "shortcuts.help": "此列表", "shortcuts.new": "新对话", "shortcuts.search": "搜索对话",
	"shortcuts.sidebar": "打开或关闭侧栏", "shortcuts.copy": "复制最后的回答", "shortcuts.stop": "停止回答", "shortcuts.newline": "换行",
	"shortcuts.send": "发送", "shortcuts.mention": "询问其他助手", "shortcuts.inComposer": "在消息框中",

	"signIn.title": "登录", "signIn.email": "电子邮箱", "signIn.password": "密码", "signIn.do": "登录", "signIn.with": "使用 {name} 继续",
	"signIn.or": "或", "signIn.noAccount": "还没有账户？", "signIn.toSignUp": "注册", "signIn.forgot": "忘记密码？",
	"signIn.forgotNoMail": "忘记密码？请联系系统管理员：此系统不发送邮件。", "signIn.welcome": "您自己的助手，在您自己的机器上。", "signIn.again.title": "会话已结束",
	"signIn.again.text": "重新登录即可继续：没有任何内容丢失。",

	"signIn.toSignUpInvited": "凭邀请注册",

	"signUp.title": "注册", "signUp.do": "创建账户", "signUp.invited": "您已受邀：请使用收到邀请的电子邮箱。", "signUp.closed": "此处的账户需要邀请。如果您收到了邀请，请在下面粘贴链接或代码。",
	"signUp.invitation": "邀请", "signUp.have": "已有账户？", "signUp.passwordHint": "至少 8 个字符。",

	"verify.title": "确认电子邮箱", "verify.sent": "邮件正发往 {email}。请点击其中的链接继续。", "verify.text": "这是您的邮箱吗？请确认。",
	"verify.do": "确认", "verify.done": "邮箱已确认。您现在可以登录。", "verify.bad": "此链接已失效。请登录以获取新链接。",

	"reset.title": "新密码", "reset.text": "请输入电子邮箱。如果它有账户，您将收到一个链接。", "reset.send": "发送链接", "reset.sent": "如果 {email} 有账户，邮件正在途中。",
	"reset.new": "新密码", "reset.do": "设置密码", "reset.done": "密码已设置。请用它登录。", "reset.noMail": "此系统不发送邮件。请向系统管理员索取新密码。",
	"reset.bad": "此链接已失效。请重新申请。",

	"loginError.title": "登录未成功", "loginError.text": "身份提供方未允许您登录，或者 {platform} 不认识您：此处的账户可能需要邀请。",

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

	"error.network": "无法连接。网络是否正常？", "error.server": "{platform} 出了问题。请稍后重试。", "error.rateLimited": { other: "请求过多。请在 {count} 秒后重试。" },
	"error.signUpClosed": "此邮箱没有有效邀请，不能在此注册。",

	"error.code.provider_unavailable": "模型暂时不可用，请稍后重试。", "error.code.provider_rate_limited": "模型当前过于繁忙，请稍后重试。",
	"error.code.provider_timeout": "模型没有及时回应。", "error.code.provider_lost": "回答中途与模型的连接断开了。",
	"error.code.provider_malformed": "模型返回的内容无法读取。", "error.code.provider_rejected": "模型拒绝了此请求。",
	"error.code.provider_auth": "模型服务商拒绝了 {platform} 的密钥，或要求付费。请告知管理员。",
	"error.code.context_too_long": "此对话对模型来说过长，请开始新对话。", "error.code.worker_lost": "此回答中断次数过多。",
	"error.code.internal": "出错了，请稍后重试。", "error.code.budget_exceeded": "额度不足，暂时无法回答。",
	"error.code.queue_full": "等待回答的问题过多，请稍后再试。", "error.code.too_many_streams": "打开的连接过多，请关闭一些页面后重试。",
	"error.code.unavailable": "所需的服务暂时不可用，请稍后重试。", "error.code.forbidden": "您没有权限这样做。",
	"error.code.not_found": "它不存在，或者您无权访问。", "error.code.conflict": "它已被更改或已存在，请刷新后重试。",
	"error.code.too_large": "内容过大。", "error.code.unsupported_media_type": "不支持这种类型的文件。",
	"error.code.no_assistant": "请先选择助手。", "error.code.turn_in_progress": "此对话正在回答另一个问题。",

	// -- Pages --
	"edit": "编辑", "create": "创建", "saved": "已保存。", "unsaved": "尚未保存", "deleted": "“{name}”已删除。",
	"description": "说明", "shared": "已共享", "share": "与组织中的所有人共享", "unshare": "停止共享",

	"libraries.title": "资料库", "libraries.all": "全部资料库", "libraries.new": "新建资料库",
	"libraries.about": "助手据以回答并引用其段落的文档。", "libraries.none": "还没有资料库。新建一个，再放入文档。",
	"libraries.chunks": "{count} 个片段", "libraries.default": "我的常用资料库",
	"libraries.default.hint": "未指明资料库的文档都归入这里。", "libraries.share.hint": "他们可以阅读和搜索；管理员可以修改。",
	"libraries.actions": "资料库“{name}”的操作", "libraries.reindex": "重新索引全部文档", "libraries.reindexing": "正在重新索引文档。",
	"libraries.model": "向量模型：{name}", "libraries.delete.title": "删除此资料库？",
	"libraries.delete.text": "“{name}”及其全部文档将被永久删除。",

	"search.title": "搜索此资料库", "search.question": "问题或词语", "search.hint": "与助手的搜索方式相同：按词语并按含义。",
	"search.do": "搜索", "search.nothing": "没有找到内容。", "search.found": "找到 {count} 个段落", "search.relevance": "相关度",
	"search.relevanceOf": "相关度 {percent}", "search.byWords": "按词语排第 {rank}", "search.notByWords": "按词语未找到",
	"search.byMeaning": "按含义排第 {rank}", "search.notByMeaning": "按含义不在前列",

	"add.title": "添加文档", "add.drop": "把文件或文件夹拖到这里，或选择要添加的内容。", "add.files": "文件", "add.folder": "文件夹",
	"add.address": "网址", "add.text": "文本", "add.git": "Git 仓库", "add.progress": "已上传 {done}/{count}",
	"add.sent": "已上传 {count} 个文件。", "add.url": "网址", "add.content": "内容", "add.gitUrl": "仓库地址（https）",
	"add.ref": "分支、标签或提交（可选）", "add.token": "访问令牌（可选）", "add.include": "仅这些文件（可选）", "add.exclude": "排除这些文件（可选）",
	"add.patterns": "以逗号分隔的模式，如 *.md, docs", "add.do": "添加", "add.added": "已添加，正在读取。", "add.importing": "导入已开始。",

	"ledger.title": "文档", "ledger.show": "显示", "ledger.all": "全部", "ledger.queued": "等待中",
	"ledger.running": "读取中", "ledger.ready": "就绪", "ledger.failed": "失败", "ledger.cancelled": "已取消",
	"ledger.none": "这里没有文档。", "ledger.pending": "{count} 个文档正在处理。", "ledger.allDone": "全部完成：{count} 个文档就绪。",
	"ledger.chunks": "{count} 个片段", "ledger.attempt": "第 {count} 次尝试", "ledger.progress": "{name} 的进度",
	"ledger.actions": "{name} 的操作", "ledger.cancel": "取消", "ledger.cancelling": "正在取消。",
	"ledger.refresh": "从网址重新获取", "ledger.refreshing": "已重新获取。", "ledger.retrying": "正在重试。",
	"ledger.delete.title": "删除此文档？", "ledger.delete.text": "“{name}”将不再被搜索到。",

	"stage.stored": "已存储", "stage.parsed": "已读取", "stage.chunked": "已切分", "stage.embedded": "已向量化",
	"stage.ready": "已索引",

	"imports.title": "Git 仓库", "imports.actions": "{name} 的操作", "imports.again": "再次导入",
	"imports.forget": "移除仓库及其文档", "imports.forgotten": "正在移除。", "imports.new": "新增 {count}",
	"imports.changed": "更改 {count}", "imports.unchanged": "未变 {count}", "imports.removed": "移除 {count}",

	"document.title": "文档", "document.back": "返回资料库", "document.status": "状态", "document.kind": "类型",
	"document.source": "来源", "document.chunks": "片段", "document.added": "添加时间", "document.timings": "用时",
	"document.chunks.about": "搜索找到的就是这些。", "document.noChunks": "还没有片段。", "document.chunk": "片段 {number}",
	"document.tokens": "{count} 个词元", "document.text": "文本", "document.showText": "显示文本",
	"document.whole": "显示全部",

	"assistants.title": "助手", "assistants.all": "全部助手", "assistants.new": "新建助手",
	"assistants.about": "您可以提问的对象：您自己的，以及与您共享的。", "assistants.search": "按名称搜索",
	"assistants.none": "还没有助手。来创建第一个吧。", "assistants.nothing": "没有匹配的助手。", "assistants.auto": "默认模型",
	"assistants.public": "对访客开放", "assistants.talk": "开始聊天", "assistants.form": "助手", "assistants.who": "身份",
	"assistants.description.hint": "人们和其他助手会看到。", "assistants.greeting": "欢迎语",
	"assistants.greeting.hint": "新对话开头显示的内容，模型不会读到。", "assistants.suggested": "推荐问题",
	"assistants.suggested.hint": "每行一个，最多六个，显示在新对话中。", "assistants.prompt": "提示词",
	"assistants.prompt.hint": "每次回答前告诉它的内容。", "assistants.model": "模型", "assistants.temperature": "温度",
	"assistants.sampling.hint": "留空：使用提供方的默认值。", "assistants.topP": "Top p", "assistants.emptyChat": "空白聊天", "assistants.knows": "知识",
	"assistants.library": "资料库", "assistants.noLibrary": "无", "assistants.memory": "记住用户",
	"assistants.memory.hint": "每个人都能查看和修改关于自己的记忆。", "assistants.web": "读取网页",
	"assistants.defaultPrompt": "附加组织的提示词", "assistants.untrusted": "谨慎",
	"assistants.untrusted.label": "读过陌生人的文本后，可能造成损害的调用", "assistants.untrusted.ask": "先询问用户",
	"assistants.untrusted.refuse": "拒绝", "assistants.untrusted.allow": "允许", "assistants.sharing": "谁可以使用",
	"assistants.share.hint": "他们可以使用；管理员可以修改。", "assistants.public.hint": "任何人无需账号，即可通过网页上的小组件提问。",
	"assistants.guestFiles": "访客可以发送文件", "assistants.guestMemory": "记住访客", "assistants.origins": "可嵌入的网页",
	"assistants.origins.hint": "每行一个，如 https://example.com。留空：全部。", "assistants.embed": "嵌入网页",
	"assistants.tools": "工具", "assistants.tools.about": "它可以调用的服务。更改立即生效。",
	"assistants.actions": "助手“{name}”的操作", "assistants.delete.title": "删除此助手？",
	"assistants.delete.text": "“{name}”将对所有人消失。其聊天会保留，但不再有它。",

	"try.title": "试一试", "try.about": "提问时会保存您的更改。这里的内容不会保留。", "try.new": "请先保存助手，再在这里试用。", "try.anew": "重新开始",
	"try.log": "试用对话", "try.question": "您的问题", "try.ask": "提问",

	"scenes.title": "场景", "scenes.about": "当谈话属于某类时附加的提示词。", "scenes.add": "添加场景", "scenes.own": "自定义场景",
	"scenes.usual": "常用场景", "scenes.edit": "编辑场景 {name}", "scenes.delete": "删除场景 {name}",
	"scenes.examples": "问题示例", "scenes.examples.hint": "每行一个。",

	"tools.title": "工具", "tools.all": "全部工具", "tools.about": "助手可以调用的服务，需要时先经人批准。", "tools.none": "还没有连接任何服务。",
	"tools.connect": "连接服务", "tools.connect.do": "连接", "tools.kind": "类型", "tools.kind.mcp": "MCP 服务器",
	"tools.kind.openapi": "OpenAPI 文档", "tools.kind.discovery": "发现地址", "tools.paste": "粘贴文档",
	"tools.document": "文档（JSON 或 YAML）", "tools.address": "地址", "tools.address.mcp": "MCP 服务器的地址。",
	"tools.address.openapi": "OpenAPI 文档的地址。", "tools.address.discovery": "服务清单的地址。", "tools.key": "服务密钥（可选）",
	"tools.key.hint": "加密存储，从不显示。", "tools.name": "名称（可选）", "tools.name.hint": "留空：使用服务自己的名称。",
	"tools.functions.count": "{count} 个函数", "tools.functions": "函数", "tools.noFunctions": "该服务没有提供函数。",
	"tools.actions": "工具“{name}”的操作", "tools.refresh": "重新读取", "tools.refreshed": "已重新读取。",
	"tools.hasKey": "带密钥", "tools.readAt": "读取于 {time}", "tools.warnings": "读取时有 {count} 条说明",
	"tools.readOnly": "只读", "tools.idempotent": "可重复", "tools.asks": "先询问", "tools.schema": "参数",
	"tools.askFirst": "每次调用前询问用户", "tools.try": "试用", "tools.tryOne": "试用函数", "tools.tryOne.about": "会真正调用。",
	"tools.function": "函数", "tools.arguments": "参数（JSON）", "tools.notJson": "参数不是 JSON。", "tools.call": "调用",
	"tools.tried": "已返回结果", "tools.triedBadly": "调用失败", "tools.calls": "调用日志", "tools.noCalls": "还没有调用。",
	"tools.when": "时间", "tools.outcome": "结果", "tools.outcome.ok": "成功", "tools.outcome.failed": "失败",
	"tools.took": "用时", "tools.isTest": "试用", "tools.delete.title": "删除此工具？",
	"tools.delete.text": "任何助手都将无法调用“{name}”。",

	"memories.title": "记忆", "memories.about": "助手记住的关于您的内容。只有您能看到。", "memories.new": "添加记忆",
	"memories.edit": "更正此记忆", "memories.actions": "全部记忆的操作", "memories.export": "导出全部",
	"memories.search": "搜索记忆", "memories.showAll": "显示全部", "memories.none": "没有关于您的记忆。",
	"memories.nothing": "没有相关的记忆。", "memories.superseded": "已被取代", "memories.sources": "来源",
	"memories.actionsOf": "记忆的操作：{content}", "memories.sources.title": "此记忆的来源",
	"memories.noSources": "没有对应的消息：由您写下，或消息已删除。", "memories.fact": "要记住的内容", "memories.fact.hint": "用一句话写一个事实。",
	"memories.forget": "忘记", "memories.forget.title": "忘记这条？", "memories.forgotten": "已忘记。",
	"memories.forgetAll": "忘记全部", "memories.forgetAll.text": "您在此组织的全部记忆将被永久删除。",

	"usage.title": "用量", "usage.about": "您的用量，按日（UTC）。", "usage.about.admin": "组织的用量，按日（UTC）。",
	"usage.from": "从", "usage.to": "到", "usage.by": "对比维度", "usage.by.model": "模型", "usage.by.assistant": "助手",
	"usage.by.key": "API 密钥", "usage.by.kind": "调用类型", "usage.by.user": "人员", "usage.measure": "指标",
	"usage.tokens": "词元", "usage.cost": "费用", "usage.calls": "调用", "usage.prompt": "输入词元",
	"usage.completion": "输出词元", "usage.day": "日期", "usage.none": "无", "usage.gone": "已删除（{id}）",
	"usage.others": "其他", "usage.nothing": "这些日子没有用量。", "usage.legend": "颜色",
	"usage.chart": "{from} 至 {to} 每日{measure}。数据见下表。", "usage.figures": "数据", "usage.export": "下载 CSV",

	"settings.title": "设置", "settings.profile": "个人资料", "settings.keys": "API 密钥", "settings.organization": "组织",
	"settings.members": "成员", "settings.groups": "群组", "settings.budgets": "预算", "settings.webhooks": "Webhook",
	"settings.feedback": "反馈", "settings.data": "我的数据", "settings.zone": "时区",
	"settings.mailLanguage": "邮件语言", "settings.mailLanguage.usual": "与系统相同", "settings.notices": "接收通知邮件",
	"settings.notices.hint": "当预算即将用尽，或您添加的文档、仓库导入失败时。", "settings.once": "仅显示这一次，请妥善保存。",
	"settings.kept": "我已保存",

	"keys.about": "供代表您的程序使用。持有密钥者即拥有其权限。", "keys.new": "新建 API 密钥", "keys.none": "您没有 API 密钥。",
	"keys.made": "您的新 API 密钥", "keys.revoke": "撤销", "keys.revoke.text": "使用“{name}”的程序将立即被拒绝。",
	"keys.revoked": "已撤销 {day}", "keys.used": "上次使用 {day}", "keys.unused": "从未使用", "keys.until": "有效期至 {day}",
	"keys.name.hint": "用途。", "keys.scope": "权限", "keys.scope.all": "做您能做的一切，但不含管理", "keys.scope.read": "读取",
	"keys.scope.write": "读取和写入", "keys.scope.public": "仅调用公共 API", "keys.assistant": "用于助手",
	"keys.assistant.all": "全部", "keys.ends": "到期", "keys.never": "永不", "keys.days": "{count} 天后",

	"organization.about": "适用于组织中的所有人。", "organization.member": "由所有者和管理员修改。",
	"organization.retention": "聊天保留天数", "organization.retention.hint": "自最后活动起计算。留空：永久。",
	"organization.prompt": "组织的提示词", "organization.prompt.hint": "在每个助手自己的提示词之前。", "organization.new": "新建组织",
	"organization.traces": "追踪中包含文本",
	"organization.traces.hint": "如果运维人员收集追踪数据，其中将包含这里的提问以及模型和工具的回答。",
	"organization.made": "“{name}”已创建。可在账号菜单中切换。",

	"members.personal": "这是您的个人组织，没有其他人。新建组织以邀请他人。", "members.roleOf": "{name} 的角色", "members.role": "角色",
	"members.remove": "移除", "members.leave": "退出", "members.remove.text": "{name} 将无法再访问此组织。",
	"members.invite": "邀请成员", "members.invite.do": "邀请", "members.invited": "邀请", "members.invitedNow": "邀请",
	"members.link": "请把此链接发给您邀请的人。仅显示这一次，系统没有发送邮件。",
	"members.mailed": "邀请已发送至 {email}。如未收到邮件，请使用此链接。仅显示这一次。", "members.withdraw": "撤回",

	"groups.about": "助手、资料库和工具可以只与群组共享，而不与所有人共享。",
	"groups.about.admin": "助手、资料库和工具可以只与群组共享，而不与所有人共享。群组成员由您决定。",
	"groups.none": "还没有群组。所有者和管理员可在设置中创建。", "groups.new": "新建群组",
	"groups.members": { other: "{count} 名成员" }, "groups.mine": "您在其中", "groups.actions": "群组“{name}”的操作",
	"groups.left": "您已退出“{name}”。", "groups.delete.title": "删除此群组？",
	"groups.delete.text": "与“{name}”共享的内容将不再对其成员开放，除非他们另有权限。",
	"groups.membersOf": "“{name}”的成员", "groups.nobody": "此群组还没有成员。", "groups.add": "加入群组",
	"groups.add.do": "加入", "groups.choose": "选择成员", "groups.share": "与群组共享",
	"groups.share.about": "各群组的成员可以如何使用“{name}”。选择后立即生效。", "groups.rightOf": "{name} 的权限",
	"groups.right.none": "未共享", "groups.right.use": "使用", "groups.right.edit": "使用和修改",

	"role.owner": "所有者", "role.admin": "管理员", "role.member": "成员",

	"budgets.about": "词元或费用的上限。超出上限的回答会被拒绝。", "budgets.none": "没有预算。", "budgets.new": "新建预算",
	"budgets.scope": "适用于", "budgets.scope.organization": "组织", "budgets.scope.user": "每个人",
	"budgets.scope.key": "每个 API 密钥", "budgets.scope.assistant": "每个助手", "budgets.scope.guest": "每个访客",
	"budgets.period": "周期", "budgets.period.day": "日", "budgets.period.month": "月", "budgets.unit": "单位",
	"budgets.unit.money": "费用", "budgets.unit.tokens": "词元", "budgets.amount": "上限",
	"budgets.limit": "每{period}最多 {limit} {unit}", "budgets.used": "已用 {used}，{day} 重新开始",
	"budgets.byOperator": "由运营者设定", "budgets.usedLabel": "已用", "budgets.each": "分别计算",

	"webhooks.about": "告知通过您的 API 密钥发起的回合进展的地址。", "webhooks.none": "没有 Webhook。", "webhooks.new": "新建 Webhook",
	"webhooks.url": "地址", "webhooks.output": "同时发送回答内容", "webhooks.whole": "适用于所有人的密钥",
	"webhooks.secret": "Webhook 的密钥", "webhooks.on": "已启用", "webhooks.off": "已停用", "webhooks.log": "日志",
	"webhooks.noLog": "尚未发送任何内容。", "webhooks.again": "重新发送", "webhooks.actions": "{url} 的操作",
	"webhooks.enable": "启用", "webhooks.disable": "停用", "webhooks.rotate": "新密钥",

	"given.about": "组织成员对回答的评价。回答本身只属于他们。", "given.totals": "最近 30 天", "given.up": "好", "given.down": "不好",
	"given.all": "全部反馈", "given.none": "没有反馈。",

	"data.export": "带走数据", "data.export.about": "您在此组织的全部内容，为一个 JSON 文档。聊天可原样导入。", "data.export.do": "导出我的数据",
	"data.erase": "删除数据", "data.erase.about": "您的聊天、文件、记忆、密钥以及仅属于您的内容。无法撤销。", "data.erase.do": "删除我的数据",
	"data.erase.text": "您在此组织的全部内容将立即消失，随后被永久删除。", "data.erase.account": "同时删除我的账号",
	"data.erase.account.hint": "包括您所有组织中的一切。", "data.erase.confirm": "请输入 {email} 以确认",
	"data.erasing": "正在删除您的数据。", "data.erased": "您的数据已删除。",
};
