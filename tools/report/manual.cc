// SPDX-License-Identifier: Apache-2.0
#include "tools/report/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "ir/version.h"

namespace prepost::tools {
namespace {

/// `text` as roff shows it: nothing in it is a request, and hyphens can be copied.
std::string Roff(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    is_line_start = c == '\n';
  }
  return out;
}

/// A word of roff's requests.
std::string RoffWord(std::string_view text) {
  std::string out = "\"";
  for (const char c : Roff(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + "\"";
}

/// Lines stay lines.
std::string Preformatted(std::string_view text) {
  return fmt::format(".nf\n{}\n.fi\n", Roff(text));
}

/// Text that --help breaks for a terminal, as paragraphs: an empty line is between two.
std::string Paragraphs(const std::string& text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      out += ".PP\n";
    } else if (line.ends_with(':') || line.find(": ") < 16) {  // a list of terms, one a line
      out += ".br\n" + Roff(line) + "\n";
    } else {
      out += Roff(line) + "\n";
    }
  }
  return out;
}

std::string Heading(const std::string& name, const std::string& what) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" {} {}\n.SH NAME\n{} \\- {}\n", RoffWord(upper),
                     RoffWord(fmt::format("prepost {}", kVersion)), RoffWord("User Commands"),
                     Roff(name), Roff(what));
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command, bool is_positional) {
  return command.get_options([is_positional](const CLI::Option* option) {
    return option->get_positional() == is_positional && !option->get_group().empty();
  });
}

std::string OptionText(const CLI::Option& option, bool is_positional) {
  const CLI::Formatter formatter;
  return fmt::format(
      ".TP\n\\fB{}\\fR{}\n{}\n", Roff(formatter.make_option_name(&option, is_positional)),
      Roff(formatter.make_option_opts(&option)), Roff(formatter.make_option_desc(&option)));
}

/// In groups, as in --help.
std::string OptionsText(const CLI::App& command) {
  std::string out;
  for (const std::string& group : command.get_groups()) {
    const auto options = command.get_options([&](const CLI::Option* option) {
      return !option->get_positional() && option->get_group() == group;
    });
    if (options.empty() || group.empty()) continue;
    out += group == "Options" ? ".SH OPTIONS\n" : fmt::format(".SS {}\n", RoffWord(group));
    for (const CLI::Option* option : options) out += OptionText(*option, false);
  }
  return out;
}

std::string SynopsisOf(const CLI::App& app, const CLI::App& command) {
  const CLI::Formatter formatter;
  std::string out = fmt::format("\\fB{} {}\\fR [\\fIOPTIONS\\fR]", Roff(app.get_name()),
                                Roff(command.get_name()));
  for (const CLI::Option* option : OptionsOf(command, /*is_positional=*/true))
    out += " " + Roff(formatter.make_option_usage(option));
  return out;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

/// All flags of `command` but positionals, with their dashes.
std::string FlagsOf(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : OptionsOf(command, /*is_positional=*/false)) {
    for (const std::string& name : option->get_snames()) out += " -" + name;
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  }
  return out.empty() ? out : out.substr(1);
}

}  // namespace

std::string ManPageOf(const CLI::App& app) {
  std::string out =
      Heading(app.get_name(), "compile multicasts and other collectives into plans, and run them");
  out += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n",
                     Roff(app.get_name()));
  out += ".SH DESCRIPTION\n" + Paragraphs(app.get_description());
  out += OptionsText(app) + ".SH COMMANDS\n";
  std::string pages;
  for (const CLI::App* command : app.get_subcommands({})) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(command->get_name()),
                       Roff(command->get_description()));
    pages += fmt::format("{}\\fB{}\\-{}\\fR(1)", pages.empty() ? "" : ",\n", Roff(app.get_name()),
                         Roff(command->get_name()));
  }
  return out + ".SH NOTES\n" + Paragraphs(app.get_footer()) + ".SH SEE ALSO\n" + pages + "\n";
}

std::string ManPageOf(const CLI::App& app, const CLI::App& command) {
  constexpr std::string_view kExamples = "Examples:\n";
  const std::string footer = command.get_footer();
  const size_t examples = footer.find(kExamples);
  std::string out = Heading(fmt::format("{}-{}", app.get_name(), command.get_name()),
                            FirstLine(command.get_description()));
  out += fmt::format(".SH SYNOPSIS\n{}\n", SynopsisOf(app, command));
  const std::string more = footer.substr(0, examples);
  out += ".SH DESCRIPTION\n" + Paragraphs(more.empty() ? command.get_description() : more);
  const auto arguments = OptionsOf(command, /*is_positional=*/true);
  if (!arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const CLI::Option* argument : arguments) out += OptionText(*argument, true);
  out += OptionsText(command);
  if (examples != std::string::npos)
    out += ".SH EXAMPLES\n" + Preformatted(footer.substr(examples + kExamples.size()));
  return out + fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", Roff(app.get_name()));
}

std::string BashCompletionOf(const CLI::App& app) {
  std::string names;
  std::string flags;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += command->get_name() + " ";
    flags += fmt::format("    {}) words='{}' ;;\n", command->get_name(), FlagsOf(*command));
  }
  return fmt::format(R"(# Completion of {0} for bash, made of {0} --help.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=''
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    words='{1}help version {2}'
  elif [[ ${{COMP_WORDS[1]}} == help ]]; then
    [[ $COMP_CWORD -eq 2 ]] && words='{1}'
  elif [[ $word == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{3}    esac
  fi
  [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _{0} {0}
)",
                     app.get_name(), names, FlagsOf(app), flags);
}

}  // namespace prepost::tools
