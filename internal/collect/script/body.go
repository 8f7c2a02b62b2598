package script

func (p *parser) body() {}
