"""Reading of questions: data sets, their published forms and the order of options."""
