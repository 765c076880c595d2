"""What pages say, in some twenty languages, when they are not the page that was asked for.

Every expression is matched against a whole heading or sentence in lower case, unless its name ends
in ``_ANYWHERE``. Precision comes first: a page that merely speaks of such things says more.
"""

from __future__ import annotations

import re


def _any(said: str) -> re.Pattern[str]:
    """One of the expressions, each on a line of its own; a line set in further goes on with it."""
    lines = said.replace("\n        ", "").splitlines()
    return re.compile("|".join(filter(None, map(str.strip, lines))))


_OH = (
    r"(?:(?:oo+ps|oh no|ohh?|sorry|whoops|uh-oh|hm+|error|we're sorry|we are sorry|ups|oups|hoppla"
    r"|ops|désolé|leider|entschuldigung|lo sentimos|pedimos desculpa|spiacenti|beklager|"
    r"hoppsan|przepraszamy|omlouváme se|sajnáljuk|ой|упс|извините|üzgünüz|抱歉|对不起)"
    r"[\s,.!:…，、-]*)?"
)
_THING = (
    r"(?:(?:web ?)?page|product|item|article|url|file|content|listing|document|resource|link|post"
    r"|job|ad|video|profile|event|story|topic|thread|entry)"
)
_PLACE = r"(?:[\s,]+(?:on|at|in|from|here|any\s?more|auf|unter|sur|en|su|op|på)\b.{0,60})?"

# The heading is nothing but a number, or nothing but "not found".
NUMBERED = _any(
    rf"""
    {_OH}(?:http[\s-]*)?(?:status|error|fehler|erreur|errore|erro|fout|błąd|chyba|fel|fejl|feil|
        ошибка|hata|virhe|hiba|eroare)?[\s:#-]*(?:code|page)?\s*404[\s:,.!-]*(?:error|fehler|
        not found|page|seite|page not found|nicht gefunden)?
    not found|nicht gefunden|non trouvée?|introuvable|no encontrad[oa]|non trovat[oa]
    não encontrad[oa]|niet gevonden|nie znaleziono|nenalezeno|hittades inte|ikke fundet
    ikke funnet|не найдено|bulunamadı|未找到|見つかりません|찾을 수 없음
    """
)

MISSING = _any(
    rf"""
    {_OH}(?:(?:the|this|that|your)\s)?(?:requested\s)?{_THING}(?:\s(?:that\s)?you(?:'re|\sare|
        \swere|'ve|\shave)?\s(?:requested|looking for|trying to (?:reach|access|view|find)|
        tried to (?:reach|access|view)))?(?:\s(?:was|is|were|has|could|can))?(?:n't|\snot)
        (?:\sbe|\sbeen)?\sfound{_PLACE}
    {_OH}(?:(?:the|this|that)\s)?(?:requested\s)?{_THING}(?:\syou(?:'re|\sare|\swere)?\s
        (?:requested|looking for))?\s(?:cannot be found|can't be found|doesn't exist|
        does not exist|no longer exists?|is no longer (?:available|active|here|live)|
        (?:has been|was) (?:removed|deleted)|has expired|may have been (?:moved|
        removed|deleted).{{0,40}}|is gone|is missing){_PLACE}
    {_OH}we (?:can't|cannot|can not|couldn't|could not|were unable to)(?: seem to)? find (?:the|
        that|this|your) {_THING}(?: you(?:'re| are| were| have)? (?:looking for|requested))?{_PLACE}
    (?:{_THING} )?no longer available|(?:this|the) {_THING} (?:isn't|is not) available anymore
    (?:sorry, )?this (?:page|content|link) isn't available|404[\s:,-]*(?:page )?not found
    this is not the (?:web ?)?page you (?:are|were) looking for|looks like this page is missing
    (?:this|the) domain(?: name)?(?: [\w.-]+)? (?:is for sale|may be for sale|has expired|
        is parked.{{0,30}})
    {_OH}wir (?:konnten|können) (?:die|diese) (?:\w+ )?seite (?:leider )?nicht finden
    {_OH}nous ne (?:trouvons|parvenons) pas (?:à trouver )?(?:la|cette) page.{{0,40}}
    {_OH}no (?:encontramos|hemos encontrado|podemos encontrar) (?:la|esta) página.{{0,40}}
    {_OH}não (?:encontramos|conseguimos encontrar) (?:a|esta) página.{{0,40}}
    {_OH}non (?:riusciamo a trovare|abbiamo trovato|troviamo) (?:la|questa) pagina.{{0,40}}
    (?:prodotto|annuncio|articolo|pagina) non più disponibile
    {_OH}we (?:kunnen|konden) (?:de|deze) (?:\w+ )?pagina (?:helaas )?niet vinden
    {_OH}(?:die |diese |der |dieser |das |dieses )?(?:angeforderte |gewünschte |gesuchte |
        aufgerufene )?(?:seite|artikel|produkt|inhalt|anzeige|angebot|dokument|datei)
        (?:,? die sie (?:suchen|aufrufen wollten),?)?(?: wurde| konnte| ist| existiert)?
        (?: leider)? (?:nicht (?:mehr )?(?:gefunden(?: werden)?|vorhanden|auffindbar)|
        nicht mehr (?:verfügbar|lieferbar|erhältlich|online)){_PLACE}
    {_OH}(?:die|diese|der|dieser|das|dieses) (?:\w+ )?(?:seite|artikel|produkt|inhalt|anzeige|
        angebot) (?:existiert (?:leider )?nicht(?: mehr)?|gibt es (?:leider )?nicht(?: mehr)?)
    {_OH}(?:de |deze )?(?:opgevraagde |gevraagde )?(?:pagina|product|artikel|advertentie)
        (?: die (?:u|je) zoekt)? (?:(?:is |kon |werd )?niet (?:gevonden|meer beschikbaar)
        (?: worden)?|bestaat (?:helaas )?niet(?: meer)?)
    {_OH}(?:la |cette |le |ce |cet |l')?(?:page|produit|article|annonce|contenu|offre)
        (?: demandée?| que vous (?:cherchez|recherchez|avez demandée?))?(?: est)? (?:introuvable|
        non trouvée?|n'existe (?:pas|plus)|n'est plus (?:disponible|en ligne)|
        n'a (?:pas )?(?:été|pu être) (?:pas )?trouvée?)
    {_OH}(?:la |esta |el |este )?(?:página|producto|artículo|anuncio|contenido)
        (?: solicitad[oa]| que (?:busca|buscas|está buscando|estás buscando))? (?:no (?:ha sido |
        fue |se ha |pudo ser )?encontrad[oa]|no existe|ya no (?:existe|está disponible)|
        no se encuentra|no encontrada)
    {_OH}(?:la |questa |il |questo |l')?(?:pagina|prodotto|articolo|annuncio|contenuto)
        (?: richiest[ao]| che (?:cerchi|stai cercando|
        hai cercato))? (?:non (?:è stat[ao] )?trovat[ao]|non esiste(?: più)?|
        non è più disponibile|inesistente)
    {_OH}(?:a |esta |o |este )?(?:página|produto|artigo|anúncio|conteúdo)
        (?: solicitad[ao]| que (?:procura|você procura|você está procurando|
        está procurando))? (?:não (?:foi )?encontrad[ao]|não existe(?: mais)?|
        não está mais disponível)
    pagina (?:căutată |solicitată )?(?:nu (?:a fost găsită|există)|negăsită)
    {_OH}(?:podana |szukana |ta )?(?:strona|produkt|oferta|ogłoszenie)
        (?: której szukasz)? (?:nie (?:została? )?(?:znalezion[aoy]|istnieje)|jest niedostępna)
    (?:strony|produktu) nie znaleziono|nie znaleziono (?:strony|produktu|takiej strony)
    {_OH}(?:požadovaná |hledaná )?(?:stránka|strana|produkt) (?:nenalezena?|nebyla? nalezena?|
        neexistuje|nebola nájdená|sa nenašla)
    {_OH}(?:запрашиваемая |данная )?(?:страница|товар|объявление)
        (?: не найден[ао]?| не существует| удален[ао]?| удалён)
    {_OH}такой страницы (?:не существует|нет)|сторінку не знайдено
    {_OH}(?:sidan|siden|side|sidan du söker|artikeln|produkten|varen)
        (?: kunde inte hittas| hittades inte| finns inte
        (?: längre)?| ikke fundet| blev ikke fundet| kunne ikke findes| findes ikke
        (?: længere)?| ble ikke funnet| finnes ikke(?: lenger)?| eksisterer ikke)
    fant ikke siden|sivua ei löydy|sivua ei löytynyt|az oldal nem található
    a keresett oldal nem található
    {_OH}(?:aradığınız )?(?:sayfa|ürün) (?:bulunamadı|bulunamıyor|mevcut değil)|η σελίδα δεν βρέθηκε
    الصفحة غير موجودة|لم يتم العثور على الصفحة|không tìm thấy trang|halaman tidak ditemukan
    ไม่พบหน้า.{{0,20}}
    (?:お探しの|指定された|ご指定の)?(?:ページ|商品|記事)(?:は|が)(?:見つかりません(?:でした)?|
        存在しません|ありません|削除されました)
    (?:您|你)?(?:访问的|請求的|请求的|要找的)?(?:页面|頁面|网页|商品)(?:不存在|未找到|找不到|
        已下架|已删除)
    {_OH}找不到(?:该)?(?:页面|頁面|网页|此頁)|(?:요청하신 )?(?:페이지|
        상품)를? 찾을 수 없습니다|존재하지 않는 (?:페이지|상품)입니다
    """
)

# Headings of walls that stand alone, and headings that need a mark of a wall in the page as well.
REFUSED = _any(
    r"""
    access (?:to this page )?(?:has been |is )?denied
    (?:error )?(?:403|1020)[\s:-]*(?:forbidden|access denied|error)?
    request (?:has been )?(?:blocked|rejected|denied)
    (?:sorry,? )?you (?:have been|are|were) blocked.{0,40}|you've been blocked
    attention required!?|pardon our interruption.*|robot check
    bot (?:verification|detection|check)|verify(?:ing)? (?:that )?you are (?:a )?human.{0,30}
    ddos protection by .*|ddos-guard|checking your browser.{0,60}|unusual traffic.{0,40}
    (?:error )?(?:429)?[\s:-]*too many requests
    zugriff (?:verweigert|blockiert)|accès (?:refusé|interdit|temporairement restreint)
    acceso denegado|accesso negato|acesso negado|toegang geweigerd|odmowa dostępu
    dostęp zabroniony|přístup odepřen|åtkomst nekad|adgang nægtet|ingen tilgang
    доступ (?:запрещ[её]н|ограничен)|erişim engellendi|アクセスが拒否されました|访问(?:被拒绝|
        受限)|拒绝访问|접근이 거부되었습니다|подтвердите,? что вы не робот
    """
)
WAITING = _any(
    r"""
    just a moment\W*|one moment,? please\W*|please wait\W*|human verification
    are you (?:a )?(?:human|robot)\W*|(?:sind sie ein |bist du ein )(?:mensch|roboter)\W*
    êtes-vous (?:un |)(?:humain|robot)\W*|вы не робот\W*
    security (?:check|verification|challenge|checkpoint)|captcha(?: challenge| check)?|forbidden
    challenge validation|nur einen moment\W*|einen moment,? bitte\W*
    sicherheits(?:überprüfung|prüfung|abfrage)|un (?:instant|momento)\W*
    un moment,? s'il vous plaît\W*|vérification de sécurité|verificación de seguridad
    verifica di sicurezza|verificação de segurança|een moment geduld\W*|beveiligingscontrole
    chwileczkę\W*|проверка безопасности|один момент\W*|安全验证|人机验证|请稍候\W*|
        しばらくお待ちください\W*|잠시만 기다려\W*.{0,10}
    """
)
ROBOTS_ANYWHERE = _any(
    r"""
    verify(?:ing)? (?:that )?you(?:'re| are) (?:a )?(?:human|not a robot|real)
    (?:prove|confirm|make sure) (?:that )?you(?:'re| are) (?:a )?(?:human|not a robot)
    unusual (?:traffic|activity|behaviou?r) (?:from|on|in|has)
    checking (?:if the site connection is secure|your browser before)
    complete the (?:security check|captcha|challenge)|solve the captcha|you have been blocked
    incapsula incident id|enable javascript and cookies to continue
    needs to review the security of your connection|made us think (?:that )?you (?:are|were) a bot
    dass (?:sie|du) (?:ein mensch|kein roboter|kein bot)
    ungewöhnliche[nr]? (?:datenverkehr|zugriffe|aktivität)
    vous (?:êtes (?:bien )?(?:un )?humain|n'êtes pas un robot)
    trafic (?:inhabituel|exceptionnel|suspect)|(?:eres|es|soy) (?:un )?humano
    no (?:eres|es|soy) un robot|tráfico inusual|non sei un robot|traffico (?:insolito|anomalo)
    (?:não é|não sou) um robô|tráfego incomum|(?:geen|niet een) robot bent
    ongebruikelijk verkeer|nie jesteś (?:robotem|botem)|nietypowy ruch
    что вы не робот|я не робот|запросы,? поступившие с вашего|robot olmadığınızı
    olağan dışı trafik|ロボットではない|通常と異なるトラフィック|验证您是真人|确认您是真人|
        异常流量|로봇이 아닙니다|비정상적인 트래픽
    """
)

# These need a mark as well.
HINTS_ANYWHERE = _any(
    r"""
    press (?:&|and) hold|you (?:don't|do not) have permission to access|disable any ad blocker
    automated (?:access|requests|queries|traffic)|are a bot|behaviou?r of a bot|super-human speed
    """
)

# Every wall speaks of one of these.
COOKIES_ANYWHERE = _any(
    "cookie|partner|advertis|werbung|publicit|tracking|куки|çerez|クッキー|쿠키"
)
CONSENT_ANYWHERE = _any(
    r"""
    cookie|consent|privacy|privacidad|privacidade|confidentialité|vie privée|datenschutz
    privatsphäre|einwilligung|personalis|personaliz|partner|werbung|publicit|advertis|tracking
    personal data|personenbezogen|données personnelles|datos personales|dati personali
    dados pessoais|persoonlijke gegevens|persoonsgegevens|dane osobowe|danych osobowych
    zgod[ayę]|osobní údaj|soubor|samtycke|personuppgifter|samtykke|legitimate interest
    berechtigtes interesse|gdpr|dsgvo|rgpd|куки|персональн|çerez|kişisel veri|クッキー|個人情報|
        同意|隐私|쿠키|개인정보
    """
)
CONSENT = _any(
    r"""
    (?:.{0,40}\b)?(?:before you continue|we (?:value|care about|respect) your privacy|
        your privacy(?: choices| settings| matters)?|cookie (?:consent|settings|preferences|wall|
        notice)|manage (?:your )?(?:consent|cookies|privacy)|consent (?:required|management)|
        privacy (?:gate|settings|wall|preferences)|accept (?:our )?cookies)(?:\b.{0,40})?
    (?:bevor (?:sie|du) (?:fortfahren|weitergehen|fortfährst).{0,40}|ihre privatsphäre.{0,40}|
        wir (?:respektieren|schätzen) ihre privatsphäre.{0,20}|cookie-?(?:einstellungen|hinweis|
        zustimmung)|datenschutz-?einstellungen|einwilligung|zustimmung(?: erforderlich)?|
        mit werbung weiterlesen)
    (?:avant de (?:continuer|poursuivre).{0,40}|.{0,40}respect(?:e|
        ons) (?:de )?votre vie privée|gestion des cookies|vos choix.{0,30}|
        antes de (?:continuar|ir).{0,40}|.{0,20}tu privacidad.{0,20}|
        prima di continuare.{0,40}|.{0,30}tua privacy.{0,20}|
        .{0,20}sua privacidade.{0,20}|voordat (?:je|u) (?:verdergaat|verder gaat|
        doorgaat).{0,30}|.{0,20}privacy-?instellingen.{0,20}|cookie-?(?:instellingen|wall)|
        zanim przejdziesz.{0,40}|.{0,20}prywatność.{0,20}|než budete pokračovat.{0,30}|
        innan du fortsätter.{0,30}|før du fortsætter.{0,30}|прежде чем продолжить.{0,30}|
        続行する前に.{0,20})
    """
)
AGREE = _any(
    r"""
    (?:i )?(?:accept|agree|allow)(?: (?:all|cookies|all cookies|and (?:continue|close|proceed)|
        & (?:continue|close)|to all))?
    yes,? i (?:agree|accept)|got it|ok(?:ay)?|continue(?: with ads)?
    (?:alle|alles)(?: cookies)? (?:akzeptieren|annehmen|erlauben|zulassen|accepteren|toestaan)
    (?:ich )?(?:stimme zu|akzeptieren?|zustimmen|einverstanden)|zustimmen und weiter\w*
    akzeptieren und (?:weiter\w*|schließen)|cookies accepteren|accepteren|akkoord|ja,? ik ga akkoord
    (?:tout )?accepter(?: (?:tout|et (?:continuer|fermer)|les cookies))?|j'accepte
    aceptar(?: (?:todo|todas|todas las cookies|y (?:continuar|cerrar)))?|acepto
    accett[ao](?: (?:tutto|tutti|e continua))?|aceitar(?: (?:tudo|todos|todos os cookies))?
    aceito|concordo|(?:zaakceptuj|akceptuj[ęe]?)(?: wszystkie?)?|zgadzam się|przejdź do serwisu
    (?:přijmout|povolit) vše|souhlasím|(?:acceptera|godkänn|tillåt)(?: alla)?
    (?:accepter|godkend|godta|tillad)(?: alle?)?|принять(?: все)?|согласен|kabul et
    tümünü kabul et|同意する|すべて同意|接受|全部接受|同意|동의|모두 동의
    """
)

LOGIN = _any(
    r"""
    (?:please |you (?:must|need to|have to) )?(?:log|sign)[\s-]?in(?: (?:to|or|with|required|
        to continue).{0,60})?
    login(?: (?:to|required|page|form).{0,40})?|member login|authentication required
    (?:bitte )?(?:anmelden|einloggen)(?: oder.{0,30})?|anmeldung|login erforderlich
    (?:se )?connect(?:er|ez-vous)(?: à.{0,40})?|connexion|identifiez-vous
    (?:iniciar|inicia|inicie) sesión(?: en.{0,40})?|acceder|accedi(?: a.{0,40})?|accesso
    login|(?:iniciar sessão|entrar|faça login)(?: em.{0,40}| no.{0,40})?
    inloggen(?: bij.{0,40})?|zaloguj(?: się)?(?: do.{0,40})?|logowanie|přihlášení
    přihlásit se|logga in|log ind|logg inn|вход(?: в.{0,40})?|войти|авторизация|giriş(?: yap)?
    oturum aç|ログイン|登录|登入|로그인
    """
)

SCRIPTS_ANYWHERE = _any(
    r"""
    (?:enable|activate|turn on|requires?|needs?|without|
        switch on) (?:your browser's )?java\s?script
    java\s?script (?:is |to be |must be |has to be )?(?:required|disabled|enabled|not enabled|
        activated|turned off)
    doesn't work properly without java\s?script|enable js\b
    java\s?script (?:aktivieren|ist deaktiviert|ist nicht aktiviert|muss aktiviert|benötigt|
        wird benötigt)
    (?:aktivieren sie|aktiviere) (?:bitte )?java\s?script|activer java\s?script
    activez java\s?script|java\s?script (?:est désactivé|doit être activé)
    (?:habilit[ae]r?|activ[ae]r?|active) (?:el |o )?java\s?script
    (?:abilit[ai]|attiva|attivare) java\s?script|(?:ativ[ae]r?|habilite) o java\s?script
    (?:schakel|zet) java\s?script (?:in|aan)|java\s?script (?:inschakelen|in te schakelen)
    włącz(?:yć)? (?:obsługę )?java\s?script|(?:zapněte|povolte) java\s?script
    aktivera java\s?script|aktiv[eé]r java\s?script|slå (?:på|til) java\s?script
    включите java\s?script|необходимо включить java\s?script|java\s?script'?i etkinleştir
    java\s?scriptを有効|启用 ?java\s?script|啟用 ?java\s?script|java\s?script를 (?:활성화|사용)
    """
)

FAILING = _any(
    r"""
    (?:error )?(?:500|502|503|504)?[\s:-]*(?:internal server error|bad gateway|
        service (?:temporarily )?unavailable|gateway time-?out)
    error (?:500|502|503|504)|error establishing a database connection|application error
    database error|a database error occurred
    (?:we're |we are |site |website |currently |temporarily )*(?:down for|under|
        undergoing) (?:scheduled |planned )?maintenance.{0,30}
    (?:scheduled |site )?maintenance(?: mode)?
    we(?:'ll| will) be (?:right )?back(?: soon| shortly)?\W*|be right back\W*
    wartungs(?:arbeiten|modus)|(?:wegen )?wartung|site en maintenance|maintenance en cours
    en mantenimiento|sitio en mantenimiento|sito in manutenzione|in manutenzione|em manutenção
    site em manutenção|onderhoud|we zijn zo terug|przerwa techniczna|prace konserwacyjne
    probíhá údržba|underhåll|vedligeholdelse|технические работы|ведутся технические работы
    bakım çalışması|メンテナンス中|ただいまメンテナンス中です|系统维护中?|网站维护中|점검 중
    """
)

# Marks of walls in the HTML, in lower case.
MARKS = (
    "_cf_chl_opt", "cf-challenge", "cf_chl_", "challenge-form", "cf-turnstile", "cf-error-details",
    "g-recaptcha", "recaptcha/api", "hcaptcha", "h-captcha", "px-captcha", "captcha-delivery.com",
    "_incapsula_resource", "edgesuite.net", "gokuprops", "funcaptcha", "arkoselabs", "geetest",
    "ddos-guard", "ray id", "incident id",
)  # fmt: skip
# Marks that only a wall has.
SURE = (
    "_cf_chl_opt", "px-captcha", "captcha-delivery.com", "gokuprops", "ddos-guard/js-challenge",
    "incapsula incident id", "window.kpsdk",
)  # fmt: skip
