package proving
import ("testing";"fmt";"strings")
func TestDbg(t *testing.T){
 left:=map[string]bool{}
 for _,n:=range strings.Split(*without,","){left[n]=true}
 s:=newSchedule(Options{Seed:*seed,Without:left})
 s.play()
 fmt.Println("repaired",s.repaired,"healthy",s.healthy,"restless",s.restless, s.m.main.tree().red, s.m.main.tree().invalid, s.m.main.tree().hidden)
 a:=s.m.main.repository.repair("xx",s.m.main.tree())
 fmt.Println(a)
 fmt.Println(s.m.main.repository.apply(s.m.main.tree(),[]*atom{a}))
}
