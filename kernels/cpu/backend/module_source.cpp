#include "kernels/cpu/backend/module_source.h"

#include <algorithm>
#include <ctype.h>
#include <set>
#include <string.h>

namespace {

struct token {
    size_t begin, end;
    enum { WORD, TEXT, SIGN } kind; /* WORD: also a number */
};

bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

/* Takes a source apart: words, signs and literals, without comments and lines of the preprocessor. */
class scanner {
  public:
    explicit scanner(const std::string &source) : s(source) {}

    std::vector<token> scan() {
        while (at < s.size()) step();
        return std::move(tokens);
    }

  private:
    const std::string &s;
    size_t at = 0;
    bool fresh = true; /* nothing but blanks stands before in this line */
    std::vector<token> tokens;

    bool here(const char *text) const { return s.compare(at, strlen(text), text) == 0; }

    void add(size_t begin, decltype(token::kind) kind) { tokens.push_back({begin, at, kind}); }

    void to_line_end() {
        for (; at < s.size() && s[at] != '\n'; at++) {
            if (s[at] == '\\' && at + 1 < s.size()) at++;
            else if (here("/*")) to(s.find("*/", at + 2), 1);
        }
    }

    void to(size_t found, size_t beyond) { at = found == std::string::npos ? s.size() : found + beyond; }

    void literal(char quote) {
        for (at++; at < s.size() && s[at] != quote && s[at] != '\n'; at++)
            if (s[at] == '\\') at++;
        if (at < s.size()) at++;
        if (at > s.size()) at = s.size();
    }

    void raw_literal() {
        const size_t open = s.find('(', at);
        if (open == std::string::npos) {
            at = s.size();
            return;
        }
        const std::string close = ")" + s.substr(at + 2, open - at - 2) + "\"";
        to(s.find(close, open), close.size());
    }

    /* Digits may be divided by quotes. */
    void word() {
        const bool number = isdigit((unsigned char)s[at]) != 0;
        while (at < s.size() &&
               (is_word(s[at]) || (number && s[at] == '\'' && at + 1 < s.size() && is_word(s[at + 1]))))
            at++;
    }

    /* A line of the preprocessor. Code below `#if 0` is not there. */
    void directive() {
        std::string line = directive_line();
        if (line != "if 0") return;
        for (int level = 1; level > 0 && at < s.size();) {
            at++; /* the end of the line */
            while (at < s.size() && (s[at] == ' ' || s[at] == '\t')) at++;
            if (at >= s.size() || s[at] != '#') {
                at = std::min(s.find('\n', at), s.size());
                continue;
            }
            line = directive_line();
            if (line.compare(0, 2, "if") == 0) level++;
            else if (line == "endif" || (level == 1 && line.compare(0, 2, "el") == 0)) level--;
        }
    }

    /* Read the directive's text, without blanks at its ends or more than one between words. */
    std::string directive_line() {
        const size_t from = ++at;
        std::string line;
        to_line_end();
        for (size_t i = from; i < at; i++) {
            if (!isspace((unsigned char)s[i])) line += s[i];
            else if (!line.empty() && line.back() != ' ') line += ' ';
        }
        while (!line.empty() && line.back() == ' ') line.pop_back();
        return line;
    }

    void step() {
        const size_t begin = at;
        const char c = s[at];
        if (c == '\n') {
            at++;
            fresh = true;
            return;
        }
        if (isspace((unsigned char)c)) {
            at++;
            return;
        }
        if (c == '#' && fresh) directive();
        else if (here("//")) to_line_end();
        else if (here("/*")) to(s.find("*/", at + 2), 2);
        else solid(begin);
        if (at == begin) at++;
    }

    void solid(size_t begin) {
        fresh = false;
        if (here("R\"")) {
            raw_literal();
            add(begin, token::TEXT);
        } else if (s[at] == '"' || s[at] == '\'') {
            literal(s[at]);
            add(begin, token::TEXT);
        } else if (is_word(s[at])) {
            word();
            add(begin, token::WORD);
        } else {
            at++;
            add(begin, token::SIGN);
        }
    }
};

/* A piece of text in the place of another. */
struct edit {
    size_t begin, end;
    std::string text;
};

class rewriter {
  public:
    explicit rewriter(const std::string &source) : s(source), tokens(scanner(source).scan()) {}

    std::string run() {
        walk();
        std::string out;
        size_t from = 0;
        for (const edit &e : edits) {
            out.append(s, from, e.begin - from);
            out += e.text;
            from = e.end;
        }
        return out.append(s, from, std::string::npos);
    }

  private:
    const std::string &s;
    const std::vector<token> tokens;
    std::vector<edit> edits;
    std::vector<bool> braces; /* those that are open: whether they are extern "C" ones */
    size_t begin = 0;         /* first token of the declaration at hand */
    std::string kernel;       /* that is being declared */
    size_t depth = 0;         /* at which its body is */

    bool is(size_t i, const char *text) const {
        const size_t n = strlen(text);
        return i < tokens.size() && tokens[i].end - tokens[i].begin == n && s.compare(tokens[i].begin, n, text) == 0;
    }
    std::string text(size_t i) const { return s.substr(tokens[i].begin, tokens[i].end - tokens[i].begin); }

    bool among(size_t from, size_t to, const char *what) const {
        for (size_t i = from; i < to; i++)
            if (is(i, what)) return true;
        return false;
    }

    /* The token behind the parenthesis that opens at i. */
    size_t behind(size_t i, const char *open, const char *close) const {
        int level = 0;
        for (; i < tokens.size(); i++) {
            if (is(i, open)) level++;
            else if (is(i, close) && --level == 0) return i + 1;
        }
        return i;
    }

    bool extern_c_only() const {
        for (bool c : braces)
            if (!c) return false;
        return true;
    }

    /* Get the name of the function at __global__ that is known by it alone; "": it is not. */
    std::string kernel_at(size_t i) const {
        if (!extern_c_only() || among(begin, i, "template")) return "";
        if (braces.empty() && !among(begin, tokens.size() < i + 4 ? tokens.size() : i + 4, "\"C\"")) return "";
        for (size_t k = i + 1; k + 1 < tokens.size() && !is(k, ";") && !is(k, "{"); k++) {
            if (tokens[k].kind != token::WORD || !is(k + 1, "(")) continue;
            const std::string name = text(k);
            if (name.compare(0, 2, "__") != 0 && name != "alignas") return name;
            k = behind(k + 1, "(", ")") - 1;
        }
        return "";
    }

    /* `extern __shared__ T name[];` from token i on: a reference to what the launch has given. The token behind. */
    size_t dynamic_shared(size_t i) {
        size_t end = i, bracket = 0;
        while (end < tokens.size() && !is(end, ";") && !is(end, "{") && !is(end, "(")) {
            if (is(end, "__align__") || is(end, "alignas") || is(end, "__attribute__")) end = behind(end + 1, "(", ")");
            else end++;
            if (!bracket && end < tokens.size() && is(end, "[")) bracket = end;
        }
        if (end >= tokens.size() || !is(end, ";") || !bracket || bracket < i + 2) return i + 1;
        std::string type, lines;
        for (size_t k = i; k + 1 < bracket;) {
            if (is(k, "extern") || is(k, "__shared__") || is(k, "static")) {
                k++;
            } else if (is(k, "__align__") || is(k, "alignas") || is(k, "__attribute__")) {
                k = behind(k + 1, "(", ")");
            } else {
                type += text(k++) + " ";
            }
        }
        std::string dims;
        for (size_t k = bracket; k < end; k++) dims += text(k);
        for (size_t at = tokens[i].begin; at < tokens[end].begin; at++)
            if (s[at] == '\n') lines += '\n';
        edits.push_back({tokens[i].begin, tokens[end].begin,
                         lines + "static thread_local " + type + "(&" + text(bracket - 1) + ")" + dims +
                             " = *reinterpret_cast<" + type + "(*)" + dims + ">(adrun::dynamic())"});
        return end;
    }

    void open(size_t i) {
        braces.push_back(i >= 2 && is(i - 1, "\"C\"") && is(i - 2, "extern"));
        begin = i + 1;
    }

    void close(size_t i) {
        if (!braces.empty()) braces.pop_back();
        begin = i + 1;
        if (kernel.empty() || braces.size() != depth) return;
        edits.push_back({tokens[i].end, tokens[i].end,
                         " static adrun::registered ad_run_entry_" + kernel + "(adrun::caller<decltype(&" + kernel +
                             ")>::make<&" + kernel + ">(\"" + kernel + "\"));"});
        kernel.clear();
    }

    void walk() {
        for (size_t i = 0; i < tokens.size(); i++) {
            if (is(i, "{")) open(i);
            else if (is(i, "}")) close(i);
            else if (is(i, ";")) end_declaration(i);
            else if (is(i, "__global__") && kernel.empty()) begin_kernel(i);
            else if (is(i, "extern") && shared_follows(i)) i = dynamic_shared(i) - 1;
            else if (is(i, "static") && is(i + 1, "__shared__")) edits.push_back({tokens[i].begin, tokens[i].end, ""});
        }
    }

    void begin_kernel(size_t i) {
        kernel = kernel_at(i);
        depth = braces.size();
    }

    /* A kernel that is only declared is not registered here. */
    void end_declaration(size_t i) {
        begin = i + 1;
        if (braces.size() == depth) kernel.clear();
    }

    bool shared_follows(size_t i) const {
        for (size_t k = i + 1; k < tokens.size() && k < i + 8; k++) {
            if (is(k, "__shared__")) return true;
            if (is(k, ";") || is(k, "{") || is(k, "}")) return false;
        }
        return false;
    }
};

std::string quoted(const std::string &text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

} // namespace

std::string ad_cpu_module_source(const std::string &source, const std::vector<std::string> &names) {
    std::string out = rewriter(source).run();
    std::set<std::string> done;
    out += "\n#line 1 \"name expressions\"\n";
    for (size_t i = 0; i < names.size(); i++) {
        size_t from = names[i].find_first_not_of(" \t&");
        if (from == std::string::npos || names[i].find('\n') != std::string::npos || !done.insert(names[i]).second)
            continue;
        const std::string expression = names[i].substr(from);
        out += "static adrun::registered ad_run_name_" + std::to_string(i) + "(adrun::caller<decltype(&" + expression +
               ")>::make<&" + expression + ">(" + quoted(names[i]) + "));\n";
    }
    return out;
}
